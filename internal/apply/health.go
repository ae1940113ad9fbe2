package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

// Bounds on a health rule: templates are not trusted.
const (
	celCostLimit = 1_000_000
	celDeadline  = 2 * time.Second
	maxPrograms  = 1_000
)

// healthCache holds compiled health rules. Bounded and safe for concurrent use.
type healthCache struct {
	mu       sync.Mutex
	programs map[string]cel.Program
}

func newHealthCache() *healthCache { return &healthCache{programs: map[string]cel.Program{}} }

// judge evaluates a rule on an object. A rule that cannot be evaluated is not ready, and says so.
func (h *healthCache) judge(ref bundle.Ref, obj *unstructured.Unstructured, rule v1beta2.HealthRule) *NotReady {
	if rule.Failed != "" {
		failed, err := h.eval(rule.Failed, obj)
		if err == nil && failed {
			return &NotReady{Object: ref, Failed: true, Message: "health rule says failed: " + rule.Failed}
		}
	}
	ready, err := h.eval(rule.Ready, obj)
	switch {
	case err != nil:
		return &NotReady{Object: ref, Message: fmt.Sprintf("health rule %q: %v", rule.Ready, err)}
	case !ready:
		return &NotReady{Object: ref, Message: "health rule is not met: " + rule.Ready}
	}
	return nil
}

func (h *healthCache) eval(expression string, obj *unstructured.Unstructured) (bool, error) {
	program, err := h.program(expression)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), celDeadline)
	defer cancel()
	out, _, err := program.ContextEval(ctx, map[string]any{"self": obj.Object})
	if err != nil {
		return false, fmt.Errorf("evaluating: %w", err)
	}
	result, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("it gives %s, not a boolean", out.Type().TypeName())
	}
	return result, nil
}

func (h *healthCache) program(expression string) (cel.Program, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.programs[expression]; ok {
		return p, nil
	}
	program, err := compile(expression)
	if err != nil {
		return nil, err
	}
	if len(h.programs) >= maxPrograms {
		clear(h.programs)
	}
	h.programs[expression] = program
	return program, nil
}

// CheckHealth says what is wrong with a rule's expressions, without an object.
func CheckHealth(rule v1beta2.HealthRule) error {
	for _, expression := range []string{rule.Ready, rule.Failed} {
		if expression == "" {
			continue
		}
		if _, err := compile(expression); err != nil {
			return fmt.Errorf("health rule of %s: %q: %w", rule.Kind, expression, err)
		}
	}
	return nil
}

func compile(expression string) (cel.Program, error) {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType), cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Sets())
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("compiling: %w", issues.Err())
	}
	program, err := env.Program(ast, cel.CostLimit(celCostLimit), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, fmt.Errorf("compiling: %w", err)
	}
	return program, nil
}
