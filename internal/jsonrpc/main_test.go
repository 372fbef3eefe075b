package jsonrpc

import (
	"testing"

	"github.com/callgate/callgate/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
