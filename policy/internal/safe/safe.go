// Package safe turns panics of a decision into refusals.
package safe

import "fmt"

// RefusePanic turns a panic into an error and the answer into its zero value,
// which refuses. The panic's text may quote the model, so it is not repeated.
func RefusePanic[T any](answer *T, err *error) {
	if r := recover(); r != nil {
		var none T
		*answer, *err = none, fmt.Errorf("policy: panic of type %T while deciding", r)
	}
}
