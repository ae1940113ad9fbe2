package infra_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kyma-project/mothership/internal/infra"
)

func TestStateNeverShowsItsKubeconfig(t *testing.T) {
	t.Parallel()
	const secret = "token-of-the-administrator"
	state := infra.State{
		Ready: true, Message: "all is well", Kubeconfig: []byte(secret), KubeconfigVersion: "v1",
		Facts: map[string]string{"kubernetes.endpoint": "https://127.0.0.1:20001"},
	}
	ways := map[string]func(v any) string{
		"JSON": func(v any) string {
			data, err := json.Marshal(v)
			return fmt.Sprint(string(data), err)
		},
		"Error": func(v any) string { return errors.Join(fmt.Errorf("of %v", v)).Error() },
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		ways[verb] = func(v any) string { return fmt.Sprintf(verb, v) }
	}
	leaks := []string{
		secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%d", []byte(secret)), "0x74",
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range []any{state, &state, []infra.State{state}, map[string]infra.State{"eu": state}, struct{ S infra.State }{state}} {
				got := way(v)
				for _, leak := range leaks {
					if strings.Contains(got, leak) {
						t.Errorf("%T shows its kubeconfig: %s", v, got)
					}
				}
				if !strings.Contains(got, "all is well") {
					t.Errorf("%T does not show what it may: %s", v, got)
				}
			}
		})
	}
}
