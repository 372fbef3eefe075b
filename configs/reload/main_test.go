package reload

import (
	"os"
	"testing"

	"github.com/callgate/callgate/internal/testkit/parallel"
)

func TestMain(m *testing.M) {
	parallel.Waiting()
	os.Exit(m.Run())
}
