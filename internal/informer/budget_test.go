package informer

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// The budget of one runtime in the cache: its Kyma with ten modules, and its Runtime. Raise it with a reason in the same change.
//
//	measured 2026-11-21: 6.9 KiB
const budget = 8 << 10

// TestBudget fails when what is kept of a runtime grows beyond its budget.
func TestBudget(t *testing.T) { // not parallel: it counts the heap of the process
	const fleet = 2000
	keep := make([]watch.Event, 0, 2*fleet)
	before := heap()
	for i := range fleet {
		keep = append(keep, decoded[v1beta2.Kyma](t, kymaOf(i)), decoded[v1beta2.Runtime](t, runtimeOf(i)))
	}
	each := (heap() - before) / fleet
	runtime.KeepAlive(keep)
	t.Logf("%d bytes each", each)
	if each > budget {
		t.Errorf("a runtime takes %d bytes in the cache; its budget is %d", each, budget)
	}
}

func decoded[T any, O object[T]](t *testing.T, text string) watch.Event {
	t.Helper()
	w := start[T, O](io.NopCloser(strings.NewReader(`{"type":"ADDED","object":`+text+"}")), func() {})
	e := <-w.ResultChan()
	w.Stop()
	if _, is := e.Object.(O); !is {
		t.Fatalf("decoded: %v", e.Object)
	}
	return e
}

// heap is what is in use, in bytes.
func heap() int {
	var m runtime.MemStats
	for range 2 { // what only weak pointers hold goes in the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func metaOf(kind string, i int) string {
	return fmt.Sprintf(`"apiVersion":"operator.kyma-project.io/v1beta2","kind":%q,"metadata":{"name":"runtime-%d","namespace":"kcp-system",
"uid":"%08d-4163-46a5-8a75-bb08c584eca6","resourceVersion":"%d","generation":1,"creationTimestamp":"2026-11-21T10:00:00Z",
"finalizers":["operator.kyma-project.io/mothership"],
"managedFields":[{"manager":"mothership","operation":"Update","fieldsV1":{"f:status":{"f:modules":{}}}}]}`, kind, i, i, 1000+i)
}

const conditionsText = `[{"type":"Ready","status":"True","reason":"AllModulesReady","message":"10 of 10 modules are ready","lastTransitionTime":"2026-11-21T10:00:01Z"},
{"type":"RuntimeReachable","status":"True","reason":"Reachable","message":"the runtime answers","lastTransitionTime":"2026-11-21T10:00:01Z"}]`

func kymaOf(i int) string {
	var spec, status []string
	for m := range 10 {
		spec = append(spec, fmt.Sprintf(`{"name":"m%04d","managed":true,"customResourcePolicy":"CreateAndDelete","values":{"text":"as it should be"}}`, m))
		status = append(status, fmt.Sprintf(`{"name":"m%04d","namespace":"bench","version":"1.0.0","channel":"regular","state":"Ready",
"inputDigest":"hmac-sha256:%064d","bundleDigest":"sha256:%064d","revision":"sha256:%064d","lastTransitionTime":"2026-11-21T10:00:02Z"}`, m, m, m, m))
	}
	return fmt.Sprintf(`{%s,"spec":{"channel":"regular","modules":[%s]},"status":{"state":"Ready","observedGeneration":1,"activeChannel":"regular",
"runtimeUID":"%08d-b160-4ce5-a2a8-0e4f5c1c1c1c","modulesReady":"10/10","conditions":%s,"modules":[%s]}}`,
		metaOf("Kyma", i), strings.Join(spec, ","), i, conditionsText, strings.Join(status, ","))
}

func runtimeOf(i int) string {
	var facts []string
	for key, value := range map[string]string{
		v1beta2.FactKubeconfigSecret: fmt.Sprintf("runtime-%d/kubeconfig", i), v1beta2.FactKubernetesVersion: "v1.36.3",
		v1beta2.FactKubeconfigVersion: fmt.Sprintf("%08d-87dd-4afe-a91b-7b5ec3127bd7/%d", i, i), v1beta2.FactRuntimeUID: fmt.Sprintf("%08d-b160-4ce5-a2a8-0e4f5c1c1c1c", i),
	} {
		facts = append(facts, fmt.Sprintf(`{"key":%q,"value":%q,"writer":"mothership","observedAt":"2026-11-21T10:00:00Z"}`, key, value))
	}
	return fmt.Sprintf(`{%s,"spec":{"provider":"byoc","kubeconfig":{"secretRef":{"name":"runtime-%d","key":"kubeconfig"}},"driftDetection":"Poll","deletionPolicy":"Delete"},
"status":{"state":"Ready","observedGeneration":1,"conditions":%s,"facts":[%s]}}`, metaOf("Runtime", i), i, conditionsText, strings.Join(facts, ","))
}
