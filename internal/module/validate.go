package module

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kyma-project/mothership/reconciler"
)

// validateIdentity checks the names that everything in the runtime is found by.
func validateIdentity(c reconciler.Component) error {
	var errs []error
	check := func(field, value string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("%w: %s is missing", ErrInvalid, field))
			return
		}
		if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("%w: %s %q: %s", ErrInvalid, field, value, strings.Join(problems, "; ")))
		}
	}
	check("name", c.Name)
	check("namespace", c.Namespace)
	if name := c.Template.ServiceAccountName; name != "" {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("%w: serviceAccountName %q: %s", ErrInvalid, name, strings.Join(problems, "; ")))
		}
	}
	return errors.Join(errs...)
}
