package apply

import (
	"testing"

	"github.com/kyma-project/mothership/internal/bundle"
)

func TestChangesOfBundles(t *testing.T) {
	t.Parallel()
	object := func(name, bytes string, stage bundle.Stage) *bundle.Object {
		return &bundle.Object{
			Ref: bundle.Ref{Kind: "ConfigMap", Namespace: "web", Name: name}, Version: "v1", Stage: stage, Member: true,
			Digest: "sha256:" + bytes, Bytes: []byte(bytes),
		}
	}
	of := func(objects ...*bundle.Object) *bundle.Bundle { return &bundle.Bundle{Objects: objects} }
	once := object("a", "2", bundle.StageBuiltIn)
	once.Once = true
	other := object("a", "2", bundle.StageBuiltIn)
	other.Version = "v2"
	shared, sharedThen := object("a", "1", bundle.StageBuiltIn), object("a", "2", bundle.StageBuiltIn)
	shared.Member, sharedThen.Member = false, false
	one, two := object("a", "1", bundle.StageBuiltIn), object("b", "1", bundle.StageBuiltIn)
	for name, c := range map[string]struct {
		from, to *bundle.Bundle
		changed  int // -1: more than that is different
	}{
		"one of two":          {of(one, two), of(object("a", "2", bundle.StageBuiltIn), two), 1},
		"in another order":    {of(one, two), of(two, object("a", "2", bundle.StageBuiltIn)), 1},
		"one more":            {of(one), of(one, two), -1},
		"another":             {of(one), of(two), -1},
		"a definition":        {of(object("a", "1", bundle.StageDefinitions)), of(object("a", "2", bundle.StageDefinitions)), -1},
		"the same definition": {of(object("a", "1", bundle.StageDefinitions), two), of(object("a", "1", bundle.StageDefinitions), object("b", "2", bundle.StageBuiltIn)), 1},
		"created once":        {of(one), of(once), -1},
		"another API version": {of(one), of(other), -1},
		"a namespace":         {of(shared), of(sharedThen), -1},
	} {
		got := changes(c.from, c.to)
		if c.changed < 0 && got != nil || c.changed >= 0 && len(got) != c.changed {
			t.Errorf("%s: %d objects, want %d", name, len(got), c.changed)
		}
	}
}
