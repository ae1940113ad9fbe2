package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// auditTimeout bounds reading all that anybody can see.
const auditTimeout = 30 * time.Second

// audit says where a secret of a test is to be seen that must not be: in the log, an object that is no Secret, or an answer over HTTP.
func (w *world) audit() error {
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	places := map[string][]string{"the log": w.log.about("")}
	for name, list := range map[string]client.ObjectList{
		"Kymas": &v1beta2.KymaList{}, "Runtimes": &v1beta2.RuntimeList{}, "events": &eventsv1.EventList{}, "ConfigMaps": &corev1.ConfigMapList{},
	} {
		if err := w.api.List(ctx, list); err != nil {
			return err
		}
		data, err := json.Marshal(list)
		if err != nil {
			return err
		}
		places[name] = []string{string(data)}
	}
	paths := []string{"/metrics", "/fleet"}
	var kymas v1beta2.KymaList
	if err := w.api.List(ctx, &kymas); err != nil {
		return err
	}
	for i := range kymas.Items {
		paths = append(paths, "/fleet/"+space+"/"+kymas.Items[i].Name)
	}
	for _, path := range paths {
		_, text, err := w.get(ctx, path)
		if err != nil {
			return err
		}
		places[path] = []string{text}
	}
	return search(places)
}

// search looks for the canaries, which all begin alike.
func search(places map[string][]string) error {
	for place, texts := range places {
		for _, text := range texts {
			if i := strings.Index(text, canaryPrefix); i >= 0 {
				return fmt.Errorf("a secret is in %s: %.300s", place, text[max(0, i-200):])
			}
		}
	}
	return nil
}

// get asks the control plane over HTTP.
func (w *world) get(ctx context.Context, path string) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.cp.Address()+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
