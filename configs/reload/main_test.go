package reload

import (
	"os"
	"testing"

	"github.com/callgate/callgate/internal/parallel"
)

func TestMain(m *testing.M) {
	parallel.Waiting()
	os.Exit(m.Run())
}
