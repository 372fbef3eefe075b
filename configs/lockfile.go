package configs

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
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/toolimport"
	"github.com/callgate/callgate/wrapper"
)

// DiscoveredTool is a tool as its server states it. Nothing of it was judged.
type DiscoveredTool struct {
	Name, Version, Endpoint, Description string
	InputSchema, OutputSchema            json.RawMessage
	// Unusable is why the server's protocol does not let it be called from here;
	// empty where it does.
	Unusable string
}

// maxOfferDepth bounds how deep a definition may nest.
const maxOfferDepth = 200

// Digest is SHA-256, in hex, over what the server states, whatever the order of
// members in it. An offer that is not strict JSON is an error.
func (o DiscoveredTool) Digest() (string, error) {
	all := []any{o.Name, o.Version, o.Endpoint, o.Description}
	for _, schema := range []json.RawMessage{o.InputSchema, o.OutputSchema} {
		if schema == nil {
			all = append(all, nil)
			continue
		}
		value, err := parser.ReadValue(schema, maxOfferDepth)
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

// Pin is a tool that an operator has accepted: what it was judged by then, and
// what its server stated.
type Pin struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Endpoint    string `json:"endpoint,omitempty"`
	Digest      string `json:"digest"` // of the offer
	Description string `json:"description,omitempty"`
	// The schemas are the server's, with what made them load.
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// ContentDigest is SHA-256, in hex, over all that a pin says, whatever the order of members in
// its schemas. Two pins whose digests are one differ in it where one was edited.
func (p Pin) ContentDigest() (string, error) {
	judged, err := DiscoveredTool{
		Name: p.Name, Version: p.Version, Endpoint: p.Endpoint, Description: p.Description,
		InputSchema: p.InputSchema, OutputSchema: p.OutputSchema,
	}.Digest()
	if err != nil {
		return "", fmt.Errorf("%s: %w", parser.Quote(p.Name), err)
	}
	sum := sha256.Sum256([]byte(p.Digest + "\n" + judged))
	return hex.EncodeToString(sum[:]), nil
}

// lockfile is what a pin file holds.
type lockfile struct {
	Server string `json:"server"`
	Tools  []Pin  `json:"tools"`
}

// LockfilePath is the file of the tools that were accepted from a server.
func LockfilePath(dataDir, server string) string {
	return filepath.Join(dataDir, "servers", server+".json")
}

// readLockfile reads the pin file of a server.
func readLockfile(r *document.Report, file, of string, data []byte) (pins []Pin, nodes []document.Node) {
	root, ok := document.ReadJSON(r, file, data)
	if !ok {
		return nil, nil
	}
	var server string
	root.Object(
		document.Field("server", func(n document.Node) { n.Text("the server's name", &server) }),
		document.Field("tools", func(n document.Node) {
			n.List("tools", func(_ int, item document.Node) {
				var p Pin
				item.Object(
					document.Field("name", func(n document.Node) { n.Text("the tool's name on its server", &p.Name) }),
					document.Field("version", func(n document.Node) { n.Text("its version", &p.Version) }),
					document.Field("endpoint", func(n document.Node) { n.Text("where its calls go", &p.Endpoint) }),
					document.Field("digest", func(n document.Node) { n.Text("the digest of what was accepted", &p.Digest) }),
					document.Field("description", func(n document.Node) { n.Text("its description", &p.Description) }),
					document.Field("input_schema", func(n document.Node) { toolfile.ReadSchema(n, &p.InputSchema) }),
					document.Field("output_schema", func(n document.Node) { toolfile.ReadSchema(n, &p.OutputSchema) }),
				)
				pins, nodes = append(pins, p), append(nodes, item)
			})
		}),
	)
	if server != of {
		root.Fail("found what was accepted of the server %q; expected that of %q", server, of)
	}
	return pins, nodes
}

// Acceptance is what became of offers that an operator wants to accept.
type Acceptance struct {
	Pins    []Pin
	Changed []*document.Fault // what was added to a schema so that it loads
	Refused []*document.Fault // why an offer is not accepted
}

// Accept judges the offers of a server as tools of the registry. Those that load
// are pins; the others are refused, each with its reasons.
func Accept(s ToolServer, offers []DiscoveredTool) *Acceptance {
	out := &Acceptance{}
	for _, o := range offers {
		p, err := out.judge(s, o)
		if err == nil {
			_, err = registry.New([]registry.Tool{{Name: s.ToolName(p.Name), Version: p.Version, InputSchema: p.InputSchema, OutputSchema: p.OutputSchema, Run: s.run(p)}})
		}
		if err != nil {
			out.refuse(s, o.Name, err)
			continue
		}
		out.Pins = append(out.Pins, p)
	}
	out.refuseCollisions(s)
	return out
}

// refuseCollisions refuses pins that cannot stand beside one another: the second of two
// that are the same, or that one name map would join.
func (a *Acceptance) refuseCollisions(s ToolServer) {
	bare := make([]registry.Tool, len(a.Pins))
	for i, p := range a.Pins {
		bare[i] = registry.Tool{Name: s.ToolName(p.Name), Version: p.Version, InputSchema: json.RawMessage(`{"type":"object"}`), Run: tool.Run{Type: "client"}}
	}
	_, err := registry.New(bare)
	if err == nil {
		return
	}
	refused := map[int]bool{}
	for _, f := range toolfile.LoadErrors(err) {
		refused[f.Tool] = true
		a.refuse(s, a.Pins[f.Tool].Name, f)
	}
	var kept []Pin
	for i, p := range a.Pins {
		if !refused[i] {
			kept = append(kept, p)
		}
	}
	a.Pins = kept
}

// refuse notes why an offer is not accepted.
func (a *Acceptance) refuse(s ToolServer, tool string, err error) {
	reasons := []string{err.Error()}
	if faults := toolfile.LoadErrors(err); len(faults) > 0 {
		reasons = nil
		for _, f := range faults {
			reasons = append(reasons, f.Message)
		}
	}
	for _, reason := range reasons {
		a.Refused = append(a.Refused, &document.Fault{File: s.Name, Message: fmt.Sprintf("%s: %s", parser.Quote(tool), reason)})
	}
}

// judge makes a pin of one offer.
func (a *Acceptance) judge(s ToolServer, o DiscoveredTool) (Pin, error) {
	switch {
	case o.Unusable != "":
		return Pin{}, errors.New(o.Unusable)
	case !registry.ValidName(s.ToolName(o.Name)):
		return Pin{}, fmt.Errorf("with its prefix it is %s; expected a name of letters, digits, _ and - in parts joined by dots, at most 64 bytes, for which a shorter prefix makes room", parser.Quote(s.ToolName(o.Name)))
	}
	digest, err := o.Digest()
	if err != nil {
		return Pin{}, err
	}
	stated := map[string]json.RawMessage{"name": quoteJSON(s.ToolName(o.Name)), "inputSchema": o.InputSchema}
	if o.InputSchema == nil {
		delete(stated, "inputSchema")
	}
	if o.OutputSchema != nil {
		stated["outputSchema"] = o.OutputSchema
	}
	data, err := json.Marshal(stated)
	if err != nil {
		return Pin{}, err
	}
	definition, changes, err := toolimport.ImportMCPTool(s.Name, data)
	if err != nil {
		return Pin{}, err
	}
	for _, f := range changes {
		a.Changed = append(a.Changed, &document.Fault{File: s.Name, Message: f.Message})
	}
	if r, found := wrapper.Hidden(o.Description); found {
		a.Changed = append(a.Changed, &document.Fault{File: s.Name, Message: fmt.Sprintf("tool %q: found %s in a description; models are shown it written out", s.ToolName(o.Name), toolfile.HiddenCharacter(r))})
	}
	return Pin{
		Name: o.Name, Version: o.Version, Endpoint: o.Endpoint, Digest: digest, Description: o.Description,
		InputSchema: definition.InputSchema, OutputSchema: definition.OutputSchema,
	}, nil
}

func quoteJSON(s string) json.RawMessage {
	q, _ := json.Marshal(s) // a string cannot fail
	return q
}

// ParseLockfile reads what EncodeLockfile has written of a server, strictly. file is its name,
// for what is wrong with it.
func ParseLockfile(file, server string, data []byte) ([]Pin, error) {
	var r document.Report
	pins, _ := readLockfile(&r, file, server, data)
	return pins, r.Err()
}

// EncodeLockfile is what the pin file of a server holds with these pins.
func EncodeLockfile(server string, pins []Pin) ([]byte, error) {
	pins = slices.Clone(pins)
	slices.SortFunc(pins, func(a, b Pin) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version)) })
	data, err := json.MarshalIndent(lockfile{server, pins}, "", " ")
	return append(wrapper.Escape(data), '\n'), err
}

// CheckLockfile says what the configuration would be refused for if these were the pins
// of a server.
func (c *Config) CheckLockfile(server string, pins []Pin) error {
	data, err := EncodeLockfile(server, pins)
	if err != nil {
		return err
	}
	main := c.Files[0]
	_, err = load(overlaySource{disk{root: filepath.Dir(main)}, LockfilePath(c.DataDir, server), data}, main, "")
	return err
}

// overlaySource is a source in which one file is another.
type overlaySource struct {
	source
	name string
	data []byte
}

func (o overlaySource) read(name string) ([]byte, error) {
	if name == o.name {
		return o.data, nil
	}
	return o.source.read(name)
}

// WriteLockfile makes pins those of a server, unless its pins are no more those that the
// configuration was loaded with. A reader sees the file of before or this one, and it
// is on disk when WriteLockfile returns nil.
func (c *Config) WriteLockfile(server string, pins []Pin) (err error) {
	data, err := EncodeLockfile(server, pins)
	if err != nil {
		return err
	}
	file := LockfilePath(c.DataDir, server)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".pins-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := c.checkLockfileUnchanged(server); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return nil // the file is in its place; only a crash now could undo that
	}
	defer dir.Close()
	_ = dir.Sync() // likewise
	return nil
}

// checkLockfileUnchanged tells whether the pins of a server are those of the configuration.
func (c *Config) checkLockfileUnchanged(server string) error {
	file := LockfilePath(c.DataDir, server)
	data, err := document.ReadFile(file)
	var now []Pin
	if err == nil {
		now, err = ParseLockfile(file, server, data)
	} else if document.IsAbsent(err) {
		err = nil
	}
	if err == nil && !reflect.DeepEqual(now, c.Pins[server]) {
		err = fmt.Errorf("%s was changed meanwhile; look again at what the server says", file)
	}
	return err
}
