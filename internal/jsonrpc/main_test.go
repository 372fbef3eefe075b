package jsonrpc

import (
	"testing"

	"github.com/callgate/callgate/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
