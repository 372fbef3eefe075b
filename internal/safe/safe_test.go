package safe_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/safe"
)

const canary = "what a model wrote"

type decision struct{ allowed bool }

func decide(p any) (d decision, err error) {
	defer safe.RecoverZero(&d, &err)
	d.allowed = true
	if p != nil {
		panic(p)
	}
	return d, nil
}

// TestPanicsTellNoValue: a panic is an error that holds nothing of the value, whatever it is.
func TestPanicsTellNoValue(t *testing.T) {
	for _, p := range []any{canary, errors.New(canary), fmt.Errorf("%s: %w", canary, errors.New(canary)), struct{ s string }{canary}, 7, &canaryError{}} {
		err := safe.Do(func() error { panic(p) })
		if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), fmt.Sprintf("%T", p)) {
			t.Errorf("%T: %v", p, err)
		}
		if d, err := decide(p); err == nil || d.allowed {
			t.Errorf("%T: %v, %v", p, d, err)
		}
	}
}

type canaryError struct{}

func (*canaryError) Error() string { return canary }

// TestRuntimePanics: what the runtime says is told, and can be found, also within another
// error, whose own words are not.
func TestRuntimePanics(t *testing.T) {
	var fault runtime.Error
	var list []int
	err := safe.Do(func() error { _ = list[3]; return nil })
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("%v", err)
	}
	wrapped := safe.PanicError(fmt.Errorf("%s: %w", canary, fault))
	if strings.Contains(wrapped.Error(), canary) || !strings.Contains(wrapped.Error(), "index out of range") {
		t.Errorf("%v", wrapped)
	}
}

func TestNoPanic(t *testing.T) {
	want := errors.New("an error")
	if err := safe.Do(func() error { return want }); err != want {
		t.Errorf("%v", err)
	}
	if err := safe.Do(func() error { return nil }); err != nil {
		t.Errorf("%v", err)
	}
	if d, err := decide(nil); err != nil || !d.allowed {
		t.Errorf("%v, %v", d, err)
	}
}
