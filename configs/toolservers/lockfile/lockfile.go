package lockfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// maxDefinitionDepth bounds how deep a definition may nest.
const maxDefinitionDepth = 200

// Digest is SHA-256, in hex, over what a server says of a tool, whatever the order of
// members in its schemas. A schema that is not strict JSON is an error.
func Digest(d tool.Definition) (string, error) {
	all := []any{d.Name, d.Version, d.Endpoint, d.Description}
	for _, schema := range []json.RawMessage{d.InputSchema, d.OutputSchema} {
		if schema == nil {
			all = append(all, nil)
			continue
		}
		value, err := parser.ReadValue(schema, maxDefinitionDepth)
		if err != nil {
			return "", fmt.Errorf("its schema is not strict JSON: %w", err)
		}
		all = append(all, []any{value})
	}
	canonical, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// Pin is a tool that an operator has accepted, with the digest of its server's definition
// and the schemas that its calls are judged by.
type Pin struct {
	Name        string `json:"name" key:"name" of:"the tool's name on its server"`
	Version     string `json:"version,omitempty" key:"version" of:"its version"`
	Endpoint    string `json:"endpoint,omitempty" key:"endpoint" of:"where its calls go"`
	Digest      string `json:"digest" key:"digest" of:"the digest of what was accepted"` // of the definition
	Description string `json:"description,omitempty" key:"description" of:"its description"`
	// The schemas are the server's, with the changes that made them load.
	InputSchema  json.RawMessage `json:"input_schema" key:"input_schema" of:"a JSON Schema (2020-12)"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" key:"output_schema" of:"a JSON Schema (2020-12)"`
}

// ContentDigest is SHA-256, in hex, over all members of a pin, whatever the order of
// members in its schemas. It differs from that of an equal pin that was edited.
func (p Pin) ContentDigest() (string, error) {
	definition, err := Digest(tool.Definition{
		Name: p.Name, Version: p.Version, Endpoint: p.Endpoint, Description: p.Description,
		InputSchema: p.InputSchema, OutputSchema: p.OutputSchema,
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", parser.Quote(p.Name), err)
	}
	sum := sha256.Sum256([]byte(p.Digest + "\n" + definition))
	return hex.EncodeToString(sum[:]), nil
}

// content is the content of a lockfile.
type content struct {
	Server string `json:"server"`
	Tools  []Pin  `json:"tools"`
}

// Path returns the lockfile of a server.
func Path(dataDir, server string) string {
	return filepath.Join(dataDir, "servers", server+".json")
}

// Read reads the lockfile of a server strictly, with the place of each pin. Its faults are
// in r.
func Read(r *document.Report, file, of string, data []byte) ([]Pin, []document.Node) {
	root, ok := document.ReadJSON(r, file, data)
	if !ok {
		return nil, nil
	}
	return ReadPins(root, of)
}

// ReadPins reads the root of the lockfile of a server.
func ReadPins(root document.Node, of string) ([]Pin, []document.Node) {
	var pins []Pin
	var nodes []document.Node
	var server string
	root.Object(
		document.Text("server", "the server's name", &server),
		document.Field("tools", func(n document.Node) {
			n.List("tools", func(_ int, item document.Node) {
				var p Pin
				item.Object(document.Fields(&p)...)
				pins, nodes = append(pins, p), append(nodes, item)
			})
		}),
	)
	if server != of {
		root.Fail("found what was accepted of the server %q; expected that of %q", server, of)
	}
	return pins, nodes
}

// Parse reads the output of Encode strictly. file is its name, for faults.
func Parse(file, server string, data []byte) ([]Pin, error) {
	var r document.Report
	pins, _ := Read(&r, file, server, data)
	return pins, r.Err()
}

// Encode returns the text of the lockfile of a server with these pins.
func Encode(server string, pins []Pin) ([]byte, error) {
	pins = slices.Clone(pins)
	slices.SortFunc(pins, func(a, b Pin) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version)) })
	data, err := json.MarshalIndent(content{server, pins}, "", " ")
	return append(wrapper.Escape(data), '\n'), err
}

// Write replaces the pins of a server in a data folder, unless they are no longer those in
// old. A reader sees the file from before or the new one, and the new one is on disk when
// Write returns nil.
func Write(dataDir, server string, old, pins []Pin) error {
	data, err := Encode(server, pins)
	if err != nil {
		return err
	}
	file := Path(dataDir, server)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".pins-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = checkUnchanged(file, server, old)
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return nil // the file is in its place; only a crash now could undo that
	}
	defer dir.Close()
	_ = dir.Sync() // likewise
	return nil
}

// checkUnchanged reports whether a lockfile still holds these pins.
func checkUnchanged(file, server string, old []Pin) error {
	var now []Pin
	data, err := document.ReadFile(file)
	switch {
	case err == nil:
		now, err = Parse(file, server, data)
	case document.IsAbsent(err):
		err = nil
	}
	if err == nil && !reflect.DeepEqual(now, old) {
		err = fmt.Errorf("%s was changed meanwhile; look again at what the server says", file)
	}
	return err
}
