// Package safe turns panics into errors that can be logged. The value of a panic may
// contain data of a model, a caller or a tool, so it is never repeated: the error has the
// type of the value, or the text of an error of the Go runtime, which quotes no data.
package safe

import (
	"errors"
	"fmt"
	"runtime"
)

// PanicError describes a recovered panic.
func PanicError(p any) error {
	var fault runtime.Error
	if err, ok := p.(error); ok && errors.As(err, &fault) {
		return fmt.Errorf("panic: %w", fault)
	}
	return fmt.Errorf("panic with a value of type %T", p)
}

// Recover turns a panic of the function that defers it into its error:
//
//	func f() (err error) {
//		defer safe.Recover(&err)
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = PanicError(p)
	}
}

// Catch gives a panic of the function that defers it, as its error, to handle; without a panic it
// does nothing:
//
//	func (f *face) serve(r *request) (refused *refusal.Error) {
//		defer safe.Catch(func(panicked error) { refused = refusal.From(refusal.Execute, panicked) })
func Catch(handle func(panicked error)) {
	if p := recover(); p != nil {
		handle(PanicError(p))
	}
}

// Discard ends a panic of the function that defers it. It is for work on which nothing depends.
func Discard() { _ = recover() }

// RecoverZero is Recover for a function with an answer, which becomes the zero value: of a
// decision that is one which refuses.
func RecoverZero[T any](answer *T, err *error) {
	if p := recover(); p != nil {
		var zero T
		*answer, *err = zero, PanicError(p)
	}
}

// Do runs a function, and returns its error or its panic.
func Do(f func() error) (err error) {
	defer Recover(&err)
	return f()
}
