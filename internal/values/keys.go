package values

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/internal/sops"
)

// noKeys is the problem that the Secret with the keys does not exist (yet).
const noKeys = "there is no Secret " + KeySecret

// keyring decrypts with the keys of one namespace, which it reads when it meets the first document that needs them.
type keyring struct {
	from      client.Reader
	namespace string

	read    bool
	keys    *sops.Keys
	problem string
}

// decrypted is a document in clear; one that SOPS has not encrypted is returned as it is. The problem is the user's to mend, the
// error is the reader's.
func (k *keyring) decrypted(ctx context.Context, text string) (plain []byte, problem string, err error) {
	if !sops.Encrypted([]byte(text)) {
		return []byte(text), "", nil
	}
	if !k.read {
		if err := k.readKeys(ctx); err != nil {
			return nil, "", err
		}
	}
	if k.problem != "" {
		return nil, k.problem, nil
	}
	plain, err = k.keys.Decrypt([]byte(text))
	if err != nil { // it holds no value and no key
		return nil, fmt.Sprintf("it is encrypted by SOPS, but %v (the keys are those of Secret %s)", err, KeySecret), nil
	}
	return plain, "", nil
}

func (k *keyring) readKeys(ctx context.Context) error {
	name := types.NamespacedName{Namespace: k.namespace, Name: KeySecret}
	var secret corev1.Secret
	err := k.from.Get(ctx, name, &secret)
	switch {
	case apierrors.IsNotFound(err):
		k.read, k.problem = true, noKeys
		return nil
	case err != nil:
		return fmt.Errorf("reading Secret %s with the keys of encrypted values: %w", name, err)
	}
	var files [][]byte
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		if strings.HasSuffix(key, KeySuffix) {
			files = append(files, secret.Data[key])
		}
	}
	k.read = true
	if k.keys, err = sops.ParseKeys(files...); err != nil {
		k.problem = fmt.Sprintf("Secret %s, keys that end in %s: %v", KeySecret, KeySuffix, err)
	}
	return nil
}
