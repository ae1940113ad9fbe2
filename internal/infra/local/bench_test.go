package local_test

import (
	"testing"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// BenchmarkStart measures a start and an end, by what is started.
//
//	go test ./internal/infra/local -run '^$' -bench Start -benchtime 5x -count 6 | benchstat -
func BenchmarkStart(b *testing.B) {
	for name, o := range map[string]local.Options{
		"APIServer": {},
		"Default":   {Controllers: local.DefaultControllers},
		"Workloads": {Controllers: local.WorkloadControllers, Nodes: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				srv, err := local.Start(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				if err := srv.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
