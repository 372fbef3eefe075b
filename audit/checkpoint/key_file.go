package checkpoint

import (
	"crypto/ed25519"
	"errors"
	"os"

	"github.com/callgate/callgate/internal/oserr"
)

// maxKeyFile bounds a file with a key, in bytes.
const maxKeyFile = 64 << 10

// ReadPublicKey reads a file with one public key as PEM. The error does not name the file.
func ReadPublicKey(name string) (ed25519.PublicKey, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, oserr.Reason(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, errors.New("found no file of a key's size; expected one public key as PEM")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, oserr.Reason(err)
	}
	return ParsePublicKey(text)
}

// CreateKeyFile writes a key to a new file that only its owner can read. The file must not
// exist yet; if it cannot be written whole, it is removed.
func CreateKeyFile(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}
