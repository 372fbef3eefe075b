package acpproxy_test

import (
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// TestWired: the program has the proxy. Tests elsewhere leave out what needs it where it has not.
func TestWired(t *testing.T) {
	if !app.Has(configs.ACPProxy) {
		t.Error("app/parts.go has no line for the proxy")
	}
}
