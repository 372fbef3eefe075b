package decimal

import (
	"bytes"
	"encoding/json"
)

// Unmarshal is json.Unmarshal that keeps numbers as they are written (json.Number), and passes
// over what follows the value that a text begins with.
func Unmarshal(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
