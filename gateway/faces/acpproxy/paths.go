package acpproxy

import (
	"fmt"
	"path/filepath"

	"github.com/callgate/callgate/internal/acp/wire"
)

// maxPath bounds the bytes of a path, as systems do.
const maxPath = 4096

// checkPaths returns an error for a path that is too long, or could be written shorter. Conditions of a policy
// compare paths as they are written, so that /w//x would not be /w/x there, and the editor opens the
// same file.
func checkPaths(pointer string, paths ...string) error {
	for _, p := range paths {
		if len(p) > maxPath {
			return &wire.Error{Pointer: pointer, Expected: fmt.Sprintf("a path of at most %d bytes", maxPath), Found: "a longer one"}
		}
		if p != "" && p != filepath.Clean(p) {
			return &wire.Error{Pointer: pointer, Expected: "a path without empty names, . and .., and without a slash behind it",
				Found: "another"}
		}
	}
	return nil
}
