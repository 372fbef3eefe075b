package toolimport

import (
	_ "embed"
	"slices"
)

//go:embed acp.yaml
var acpTools []byte

// ACP returns the tool file of the client's side of the Agent Client Protocol: files and commands
// of the editor, and the permissions that an agent asks for, by the kinds of tools.
func ACP() []byte { return slices.Clone(acpTools) }
