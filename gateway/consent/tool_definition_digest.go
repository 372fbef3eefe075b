package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// Definition is the digest of a tool as people see it when they approve a call of it: what it
// is said to do, what it takes and gives, and where its calls go. It covers no credential, and
// of secrets in the environment of a command their places: a key that is rotated changes no
// tool.
func Definition(t *registry.Entry) (string, error) {
	run := t.Run()
	run.Credential = nil
	text, err := json.Marshal(struct {
		Name, Version, Description, Kind, Effect string
		Input, Output                            json.RawMessage
		Run                                      tool.Run
	}{t.Name(), t.Version(), t.Description(), t.Kind(), t.Effect(), t.InputSchema(), t.OutputSchema(), run})
	if err != nil {
		return "", fmt.Errorf("the definition of %s: %w", t.Name(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
