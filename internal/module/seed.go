package module

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/cluster"
)

// seedName is the Secret in mothership-system of a runtime that holds what per-runtime randomness is derived from.
const seedName = "mothership-seed"

var secrets = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}

// seedSecret is the Secret as it is sent and read.
type seedSecret struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Data       map[string][]byte `json:"data"`
}

// seedFunc gets the seed of a runtime.
type seedFunc func(ctx context.Context, rt *Runtime) ([]byte, error)

// perRuntime fills in what rendering for one runtime needs: its identity, and a secret that stays there.
func perRuntime(ctx context.Context, rt *Runtime, seed seedFunc, o *RenderOptions) error {
	uid, err := rt.UID(ctx)
	if err != nil {
		return err
	}
	secret, err := seed(ctx, rt)
	if err != nil {
		return fmt.Errorf("reading the seed of generated secrets: %w", err)
	}
	o.PerRuntime, o.Secret = uid, secret
	return nil
}

func readOrWriteSeed(ctx context.Context, rt *Runtime) ([]byte, error) {
	seed, err := readSeed(ctx, rt)
	if !errors.Is(err, cluster.ErrNotFound) {
		return seed, err
	}
	if err := writeSeed(ctx, rt); err != nil {
		return nil, err
	}
	return readSeed(ctx, rt)
}

func readSeedOrForget(ctx context.Context, rt *Runtime) ([]byte, error) {
	seed, err := readSeed(ctx, rt)
	if errors.Is(err, cluster.ErrNotFound) {
		return newSeed()
	}
	return seed, err
}

func newSeed() ([]byte, error) {
	seed := make([]byte, 32)
	if _, err := rand.Read(seed); err != nil {
		return nil, fmt.Errorf("drawing randomness: %w", err)
	}
	return []byte(base64.StdEncoding.EncodeToString(seed)), nil
}

// readSeed reads the Secret. One that does not exist is cluster.ErrNotFound; that it cannot be read is a *RuntimeError.
func readSeed(ctx context.Context, rt *Runtime) ([]byte, error) {
	var s seedSecret
	err := rt.remote.Get(ctx, secrets, v1beta2.SystemNamespace, seedName, &s)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, ofRuntime(ctx, err)
	}
	if len(s.Data["seed"]) == 0 {
		return nil, fmt.Errorf("%w: Secret %s/%s has no seed: delete it, and generated secrets of perRuntime modules are made anew", ErrInvalid, v1beta2.SystemNamespace, seedName)
	}
	return s.Data["seed"], nil
}

// writeSeed makes the Secret, once: somebody else's is as good.
func writeSeed(ctx context.Context, rt *Runtime) error {
	seed, err := newSeed()
	if err != nil {
		return err
	}
	namespace, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": v1beta2.SystemNamespace}})
	if err != nil {
		return err
	}
	body, err := json.Marshal(seedSecret{
		APIVersion: "v1", Kind: "Secret", Metadata: map[string]any{"name": seedName, "namespace": v1beta2.SystemNamespace},
		Data: map[string][]byte{"seed": seed},
	})
	if err != nil {
		return err
	}
	if err := rt.remote.Create(ctx, namespaces, "", namespace, nil); err != nil && !errors.Is(err, cluster.ErrConflict) {
		return err
	}
	if err := rt.remote.Create(ctx, secrets, v1beta2.SystemNamespace, body, nil); err != nil && !errors.Is(err, cluster.ErrConflict) {
		return err
	}
	return nil
}
