package wire_test

import (
	"os"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

func schemaText(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(corpora.Testdata("schemas", "acp", "v1.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
