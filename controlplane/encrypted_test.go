package controlplane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/values"
)

// showsEncrypted is a chart whose ConfigMap shows what of an encrypted file it was given.
const showsEncrypted = `apiVersion: v1
kind: ConfigMap
metadata: {name: $NAME}
data: {user: {{ .Values.db_secret.user | quote }}, port: {{ .Values.port | quote }}}
`

// sopsFile is a file of internal/sops that the real program has encrypted, or a key for it.
func sopsFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "internal", "sops", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestEncryptedValues has a module wait for the keys, which wake it when they come; what cannot be decrypted changes nothing.
func TestEncryptedValues(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0", func(m *v1beta2.ModuleTemplateSpec) {
		m.Source = s.chart(strings.ReplaceAll(showsEncrypted, "$NAME", s.mod("app")))
		m.PostRender = &v1beta2.PostRender{Labels: map[string]string{"example.com/team": "of-the-template"}}
	})
	file := s.secret(s.mod("later"), map[string]string{"values.yaml": sopsFile(t, "suffix.yaml")})
	s.create(file)
	s.wants(s.entry("app", s.from("later")))
	m := s.state("app", v1beta2.StateWaiting)
	if len(m.WaitingFor) != 1 || m.WaitingFor[0] != "values/secret/"+values.KeySecret {
		t.Errorf("it waits for %q", m.WaitingFor)
	}
	s.create(s.secret(values.KeySecret, map[string]string{"fleet" + values.KeySuffix: sopsFile(t, "key.txt")}))
	s.data("app", "user", "u")
	s.data("app", "port", "5432")
	s.object("app", "labelled", func(m *corev1.ConfigMap) bool { return m.Labels["example.com/team"] == "of-the-template" })
	s.ready()

	change(s, &corev1.Secret{}, file.Name, func(s *corev1.Secret) {
		s.Data = map[string][]byte{"values.yaml": []byte(strings.Replace(sopsFile(t, "suffix.yaml"), "port: 5432", "port: 1", 1))}
	})
	m = s.module("app", "in error", func(m v1beta2.ModuleStatus) bool { return m.State == v1beta2.StateError })
	if !strings.Contains(m.Message, "it was changed after it was encrypted") {
		t.Errorf("message %q", m.Message)
	}
	s.data("app", "port", "5432")
}
