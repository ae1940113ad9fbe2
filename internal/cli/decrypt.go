package cli

import (
	"fmt"

	"github.com/kyma-project/mothership/internal/sops"
)

// opener returns the content of a file of values in clear.
type opener func(name string, data []byte) ([]byte, error)

// decrypt is an opener with the age keys that SOPS itself would use: those of the environment.
func (a *app) decrypt(name string, data []byte) ([]byte, error) {
	if !sops.Encrypted(data) {
		return data, nil
	}
	keys, err := a.ageKeys()
	if err != nil {
		return nil, err
	}
	plain, err := keys.Decrypt(data)
	if err != nil {
		err = fmt.Errorf("reading values: %s is encrypted by SOPS, but %w", name, err)
	}
	if err != nil && keys == nil {
		err = &hintedError{err: err, hint: "name a file with age keys in SOPS_AGE_KEY_FILE"}
	}
	return plain, err
}

// ageKeys are those of SOPS_AGE_KEY and of the file in SOPS_AGE_KEY_FILE; nil where there are none.
func (a *app) ageKeys() (*sops.Keys, error) {
	var files [][]byte
	if text := a.p.Getenv("SOPS_AGE_KEY"); text != "" {
		files = append(files, []byte(text))
	}
	if name := a.p.Getenv("SOPS_AGE_KEY_FILE"); name != "" {
		data, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading SOPS_AGE_KEY_FILE: %w", err)
		}
		files = append(files, data)
	}
	if len(files) == 0 {
		return nil, nil
	}
	return sops.ParseKeys(files...)
}

// refuseEncrypted is an opener for values that are written down where everybody who reads a Kyma would read them.
func refuseEncrypted(name string, data []byte) ([]byte, error) {
	if !sops.Encrypted(data) {
		return data, nil
	}
	return nil, &hintedError{
		err:  fmt.Errorf("reading values: %s is encrypted by SOPS: in the Kyma it would stand in clear", name),
		hint: "put the file as it is into a Secret, and name that under valuesFrom of the module",
	}
}
