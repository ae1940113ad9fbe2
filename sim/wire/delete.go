package wire

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kyma-project/mothership/sim/state"
)

func fieldErrors(name, problem string) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath(name), "", problem)}
}

func (q *request) deletion() (state.Deletion, error) {
	o, err := q.deleteOptions()
	if err != nil {
		return state.Deletion{}, err
	}
	d := state.Deletion{}
	if d.DryRun, err = dryRun(o.DryRun); err != nil {
		return d, err
	}
	if o.PropagationPolicy != nil {
		d.Propagation = *o.PropagationPolicy
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil {
			d.UID = *p.UID
		}
		if p.ResourceVersion != nil {
			d.Version = *p.ResourceVersion
		}
	}
	d.Admit = q.admission(d.DryRun)
	return d, nil
}

func (q *request) delete() error {
	d, err := q.deletion()
	if err != nil {
		return err
	}
	o, gone, err := q.c.Delete(q.path.v, q.path.namespace, q.path.name, d)
	if err != nil {
		return err
	}
	if !gone {
		return q.object(http.StatusOK, o)
	}
	WriteStatus(q.out, q.Request, metav1.Status{
		Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: q.path.name, Group: q.path.v.Group, Kind: q.path.v.Plural, UID: o.Identity.UID},
	})
	return nil
}

func (q *request) deleteCollection() error {
	f, err := q.filter()
	if err != nil {
		return err
	}
	d, err := q.deletion()
	if err != nil {
		return err
	}
	list, err := q.c.DeleteCollection(q.path.v, f, d)
	if err != nil {
		return err
	}
	answer(q.out, http.StatusOK, jsonType, q.encodeList(list))
	return nil
}
