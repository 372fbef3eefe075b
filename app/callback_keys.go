package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/wholefile"
)

// CallbackKeyFile is the file of the keys of a configuration.
func CallbackKeyFile(c *configs.Config) (string, error) {
	place := c.Callbacks.Keys.String()
	if place == "" {
		return configs.CallbackKeysPath(c.DataDir), os.MkdirAll(c.DataDir, 0o700)
	}
	file, ok := strings.CutPrefix(place, "file:")
	if !ok {
		return "", fmt.Errorf("callbacks.keys are at %s; expected a file, to which a key can be added", place)
	}
	return file, nil
}

// RotateCallbackKeys adds a key to a file.
func RotateCallbackKeys(file string, now time.Time, lead time.Duration, keep int) (*identity.CallbackKeys, time.Time, error) {
	var keys *identity.CallbackKeys
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		lead = 0 // no other signs meanwhile
	case err != nil:
		return nil, now, err
	default:
		if keys, err = identity.ParseCallbackKeys(string(text)); err != nil {
			return nil, now, err
		}
	}
	keys = keys.Rotate(now.Add(lead), keep)
	return keys, now.Add(lead), wholefile.Replace(file, keys.Encode())
}
