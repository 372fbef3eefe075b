package mcp

import (
	"context"
	"testing"
)

// panickingConnection panics where a request is sent.
type panickingConnection struct {
	connection
	disconnected bool
}

func (*panickingConnection) roundTrip(context.Context, *request) *reply { panic("x") }

func (c *panickingConnection) disconnect() { c.disconnected = true }

// TestPanicWhileOpening: a panic while a session is opened ends the connection, or its program
// would run on, and Close would wait for it without end.
func TestPanicWhileOpening(t *testing.T) {
	c := &panickingConnection{}
	func() {
		defer func() { _ = recover() }()
		_, _ = openSession(t.Context(), &sharedSession{client: &Client{}}, c)
		t.Error("nothing panicked")
	}()
	if !c.disconnected {
		t.Error("the connection is left open")
	}
}
