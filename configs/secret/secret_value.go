package secret

import (
	"errors"
	"fmt"
	"strings"
)

// maxSecretBytes bounds a secret, in bytes.
const maxSecretBytes = 64 << 10

// secretOf is the secret in the bytes of a file or of a command's output, without line breaks at
// its end. Its error holds nothing of it.
func secretOf(data []byte) (string, error) {
	value := strings.TrimRight(string(data), "\r\n")
	switch {
	case len(data) > maxSecretBytes:
		return "", fmt.Errorf("more than %d bytes; expected a secret", maxSecretBytes)
	case value == "":
		return "", errors.New("nothing; expected a secret")
	}
	return value, nil
}
