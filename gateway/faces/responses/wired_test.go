package responses_test

import (
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/upstream"
)

// TestWired: the program has the face. Tests elsewhere leave out what needs it where it has not.
func TestWired(t *testing.T) {
	if !app.Speaks(upstream.ResponsesWire) {
		t.Error("app.ModelFaces has no line for this face")
	}
}
