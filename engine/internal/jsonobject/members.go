package jsonobject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Members reads an object, and keeps the bytes of its values as they are.
func Members(arguments []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	all := map[string]json.RawMessage{}
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("no object: %w", err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if _, twice := all[name]; twice || !ok {
			return nil, errors.New("a member stands twice")
		}
		all[name] = raw
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the object")
	}
	return all, nil
}
