package schema

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapi "k8s.io/kube-openapi/pkg/validation/errors"
)

// schemaError words what a definition's schema refuses as the API server does.
func schemaError(err error) *field.Error {
	var v *openapi.Validation
	if !errors.As(err, &v) {
		return field.Invalid(field.NewPath(""), "", err.Error())
	}
	path := fieldPath(v.Name)
	switch v.Code() {
	case openapi.RequiredFailCode:
		return field.Required(path, "")
	case openapi.EnumFailCode:
		var values []string
		for _, value := range v.Values {
			if text, ok := value.(string); ok {
				values = append(values, text)
			}
		}
		return field.NotSupported(path, v.Value, values)
	case openapi.InvalidTypeCode:
		return field.TypeInvalid(path, v.Value, v.Error())
	}
	return field.Invalid(path, v.Value, v.Error())
}
