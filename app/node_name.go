package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
)

// nodeFile has the name of a node, in its data_dir.
const nodeFile = "node"

// nodeName returns the name of the gateway that a data folder belongs to, the same at every start and
// that of no other. The first start makes it. The folder must be locked.
func nodeName(dir string) (string, error) {
	file := filepath.Join(dir, nodeFile)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		name := rand.Text()
		if err := errors.Join(wholefile.Replace(file, []byte(name+"\n")), wholefile.SyncFolder(dir)); err != nil {
			return "", fmt.Errorf("%s: %w", file, oserr.Reason(err))
		}
		return name, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: found %s, expected a regular file", file, oserr.FileKind(info.Mode()))
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, oserr.Reason(err))
	}
	name := strings.TrimSpace(string(text))
	if len(name) != len(rand.Text()) || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", fmt.Errorf("%s: found no name of a gateway: restore the file from a backup of this gateway, or remove it, so that the gateway begins with a new name and does not know its own calls on Redis any more", file)
	}
	return name, nil
}
