// Package toolimport translates foreign tool definitions into tool files: those of the
// Model Context Protocol, of requests to models (chat completions, Anthropic Messages, OpenAI
// Responses), and the operations of an OpenAPI document. Every tool of a result loads without changes. A tool without a strict form is
// left out with the reason, and every addition to a tool or omission from it is reported
// with its position. Nothing is fetched.
package toolimport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// Result is the result of importing a list of tool definitions.
type Result struct {
	// YAML is a tool file, with its end line, of all tools that load; nil where
	// none does.
	YAML    []byte
	Names   []string          // of the tools in YAML
	Changed []*document.Fault // what was added to a definition so that it loads
	Refused []*document.Fault // why a tool is left out
	// Server is the URL before the paths of an OpenAPI document; empty for other sources.
	Server string
}

// sourceFormat is one way in which foreign tools are written.
type sourceFormat struct {
	// list names the members that may hold the list, outermost first.
	list []string
	// read reads one tool, and reports what cannot be.
	read func(document.Node, *importedTool)
	// parts, where it is not nil, takes the place of read: one definition may stand for no tool, which
	// is reported, or for several.
	parts func(document.Node) []toolPart
	// more, where it is not nil, returns further lists of tools of the whole file. The first list may be
	// absent if there are any.
	more func(root document.Node) []document.Node
}

// toolPart is one tool of a definition.
type toolPart struct {
	node document.Node
	read func(document.Node, *importedTool)
}

// importFrom translates a list of tools in a file. The tools run at the application
// (run.type client) with the effect once, whatever their definition says: the operator may
// change both. Their schemas are cured (schema.Cure), which Changed reports.
//
// The error is Faults if the file is invalid.
//
// Where only has values, the tools are those whose names match one of them (see matchName). A value that
// matches no name is an error.
func importFrom(file string, data []byte, d sourceFormat, only []string) (*Result, error) {
	if err := checkGlobs("only", only); err != nil {
		return nil, err
	}
	r := document.Report{Unlimited: true} // each tool that is left out is named
	if found := otherKind(file, data); found != "" {
		r.Add(&document.Fault{File: file, Line: 1, Column: 1, Message: "found " + found})
		return nil, r.Err()
	}
	root, ok := document.ReadJSON(&r, file, data)
	if !ok {
		return nil, r.Err()
	}
	list := root
	for _, key := range d.list {
		if _, value, ok := list.Child(key); ok && list.IsMapping() {
			list = value
		}
	}
	lists := []document.Node{list}
	if d.more != nil {
		if further := d.more(root); len(further) > 0 && !list.IsList() && !root.Has("tools") {
			lists = further
		} else {
			lists = append(lists, further...)
		}
	}
	for _, list := range lists {
		if !list.IsList() {
			list.Fail("found %s; expected a list of tools, or an object with the member tools", list.TypeName())
			return nil, r.Err()
		}
	}
	im := newImporter(&r, only)
	for _, list := range lists {
		list.List("tools", func(_ int, item document.Node) { im.addItem(item, d) })
	}
	if err := im.only.err(file); err != nil {
		return nil, err
	}
	return im.finish()
}

// addItem translates one element of a list.
func (im *importer) addItem(item document.Node, d sourceFormat) {
	switch {
	case !item.IsMapping():
		item.Fail("found %s; expected a tool", item.TypeName())
	case d.parts == nil:
		im.add(item, d.read)
	default:
		before := len(im.report.Faults)
		parts := d.parts(item)
		if len(im.report.Faults) > before && !im.only.chooses(item.StringAt("name")) {
			im.report.Faults = im.report.Faults[:before]
		}
		for _, part := range parts {
			im.add(part.node, part.read)
		}
	}
}

type importer struct {
	out    *Result
	report *document.Report
	only   *filter // of names
	tools  []importedTool
}

type importedTool struct {
	definition registry.Tool
	node       document.Node
	schemas    map[string]document.Node // input_schema and output_schema, as they will be written
	changes    []*document.Fault
}

func newImporter(r *document.Report, only []string) *importer {
	return &importer{out: &Result{}, report: r, only: newFilter("only", only, matchName)}
}

// finish is the end of every import.
func (im *importer) finish() (*Result, error) {
	im.tools = toolfile.DropCollisions(im.tools,
		func(t importedTool) (name, version string) { return t.definition.Name, "" },
		func(t importedTool, f *registry.LoadError) { t.node.Fail("%s", f.Error()) })
	for _, t := range im.tools {
		im.out.Names = append(im.out.Names, t.definition.Name)
		im.out.Changed = append(im.out.Changed, t.changes...)
	}
	if len(im.tools) > 0 {
		if err := im.write(); err != nil {
			return nil, err
		}
	}
	im.out.Refused = append(im.out.Refused, im.report.Faults...)
	return im.out, nil
}

// add translates one definition, and refuses it, with every reason, where the
// registry does.
func (im *importer) add(n document.Node, read func(document.Node, *importedTool)) {
	before := len(im.report.Faults)
	t := importedTool{node: n, schemas: map[string]document.Node{}}
	t.definition.Effect, t.definition.Run.Type = "once", "client"
	read(n, &t)
	if !im.only.chooses(t.definition.Name) {
		im.report.Faults = im.report.Faults[:before]
		return
	}
	if len(im.report.Faults) > before || !t.makeVisible() || !im.validate(&t) {
		return
	}
	im.tools = append(im.tools, t)
}

// readName reads the name and the description of a tool.
func (t *importedTool) readName(n document.Node) {
	if _, name, ok := n.Child("name"); ok {
		name.Text("the tool's name", &t.definition.Name)
	} else {
		n.Fail("found a tool without a name")
	}
	t.definition.Description = n.StringAt("description")
}

// validate reports whether the registry accepts the tool, once its schemas are cured as those of a tool
// that a request brings are.
func (im *importer) validate(t *importedTool) bool {
	for key, at := range map[string]*json.RawMessage{"input_schema": &t.definition.InputSchema,
		"output_schema": &t.definition.OutputSchema} {
		node, ok := t.schemas[key]
		if !ok {
			continue
		}
		raw, ok := node.JSON()
		if !ok {
			return false
		}
		_, changes := schema.Cure(raw, key == "output_schema")
		for i := range changes {
			if !t.change(key, node, &changes[i]) {
				return false
			}
		}
		if *at, ok = node.JSON(); !ok {
			return false
		}
	}
	_, err := registry.New([]registry.Tool{t.definition})
	if err == nil {
		return true
	}
	for _, f := range toolfile.LoadErrors(err) {
		at := t.node
		if len(f.Field) > 0 {
			if schema, ok := t.schemas[f.Field[0]]; ok {
				at = schema.At(f.Pointer)
			}
		}
		at.Fail("%s", f.Error())
	}
	return false
}

// change makes one change of a cure in a schema, and notes it.
func (t *importedTool) change(key string, whole document.Node, c *schema.Change) bool {
	object, ok := whole.Resolve(c.Pointer)
	if !ok || !object.IsMapping() {
		return whole.Fail("tool %q: %s at %s: found no place for what the import changes", t.definition.Name, key, c.Pointer)
	}
	at := object
	name, value, stated := object.Child(c.Key)
	if stated {
		at = name
	}
	t.reportChange(at, "%s at %s: %s", key, c.At(), c.Note)
	switch {
	case c.Rename != "":
		name.Value = c.Rename
	case c.Value != nil:
		v, ok := document.ReadJSON(object.Report, c.Key, c.Value)
		if !ok {
			return false
		}
		v.Line, v.Column = at.Line, at.Column
		if c.Key == "additionalProperties" {
			v.LineComment = "# added by the import: the author declares no members"
		}
		if stated {
			*value.Node = *v.Node
		} else {
			object.Content = append(object.Content, scalar(c.Key), v.Node)
		}
	default:
		i := slices.Index(object.Content, name.Node)
		object.Content = slices.Delete(object.Content, i, i+2)
	}
	return true
}

// reportChange notes what was added to the tool, or left out of it.
func (t *importedTool) reportChange(at document.Node, format string, args ...any) {
	t.changes = append(t.changes, at.Fault("tool %q: %s", t.definition.Name, fmt.Sprintf(format, args...)))
}

// write makes the tool file, and reads it back: what it says must be what was
// judged.
func (im *importer) write() error {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, t := range im.tools {
		tool := &yaml.Node{Kind: yaml.MappingNode}
		add := func(key string, value *yaml.Node) { tool.Content = append(tool.Content, scalar(key), value) }
		add("name", scalar(t.definition.Name))
		if t.definition.Description != "" {
			add("description", scalar(t.definition.Description))
		}
		if t.definition.Kind != "" {
			add("kind", scalar(t.definition.Kind))
		}
		add("effect", scalar(t.definition.Effect))
		for _, key := range []string{"input_schema", "output_schema"} {
			if schema, ok := t.schemas[key]; ok {
				add(key, plainStyle(schema.Node))
			}
		}
		add("run", runNode(t.definition.Run))
		list.Content = append(list.Content, tool)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("tools"), list}}); err != nil {
		return err
	}
	b.WriteString(document.EndLine + "\n")
	im.out.YAML = b.Bytes()

	var r document.Report
	back := toolfile.Read(&r, "imported.yaml", im.out.YAML)
	if err := r.Err(); err != nil {
		return err
	}
	for i, e := range back {
		if d := im.tools[i].definition; !reflect.DeepEqual(e.Definition, d) {
			return fmt.Errorf("tool %q does not read back as it was imported", d.Name)
		}
	}
	return nil
}

// runNode says how an imported tool is run, as far as the import knows.
func runNode(r tool.Run) *yaml.Node {
	run := flowNode(yaml.MappingNode, scalar("type"), scalar(r.Type))
	if r.Type != "http" {
		return run
	}
	run.Style = 0
	run.Content = append(run.Content, scalar("method"), scalar(r.Method), scalar("url"), scalar(r.URL))
	if len(r.Parameters) > 0 {
		parameters := &yaml.Node{Kind: yaml.MappingNode}
		for _, p := range r.Parameters {
			place := scalar(p.In)
			if p.Name != "" || p.Join != "" {
				place = flowNode(yaml.MappingNode, scalar("in"), scalar(p.In))
				for _, more := range [][2]string{{"name", p.Name}, {"join", p.Join}} {
					if more[1] != "" {
						place.Content = append(place.Content, scalar(more[0]), scalar(more[1]))
					}
				}
			}
			parameters.Content = append(parameters.Content, scalar(p.Argument), place)
		}
		run.Content = append(run.Content, scalar("parameters"), parameters)
	}
	if c := r.Credential; c != nil {
		credential := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: c.Secret, Style: yaml.DoubleQuotedStyle}
		if c.In == tool.InHeader {
			credential = flowNode(yaml.MappingNode, scalar("in"), scalar(c.In), scalar("name"), scalar(c.Name), scalar("value"), credential)
		}
		run.Content = append(run.Content, scalar("credential"), credential)
	}
	if len(r.Addresses) > 0 {
		addresses := flowNode(yaml.SequenceNode)
		for _, a := range r.Addresses {
			addresses.Content = append(addresses.Content, scalar(a))
		}
		run.Content = append(run.Content, scalar("addresses"), addresses)
	}
	return run
}

// flowNode is a list or mapping on one line.
func flowNode(kind yaml.Kind, content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: kind, Style: yaml.FlowStyle, Content: content}
}

// scalar is a string as people write YAML: with quotes only where it needs them.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, func(r rune) bool { return document.IsControl(r) && r != '\n' }) {
		n.Style = yaml.DoubleQuotedStyle // the others would show them unchanged
	}
	return n
}

// plainStyle copies a tree as people write YAML: without quotes where none are
// needed.
func plainStyle(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return scalar(n.Value)
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, LineComment: n.LineComment}
	for _, child := range n.Content {
		c.Content = append(c.Content, plainStyle(child))
	}
	return c
}

// makeVisible writes hidden characters in the texts of an imported tool as escapes, which
// Changed reports, and refuses them anywhere else.
func (t *importedTool) makeVisible() bool {
	change := func(at document.Node, what string, r rune) {
		t.reportChange(at, "found %s in a %s; it was written out as %s", toolfile.HiddenCharacter(r), what, wrapper.EscapeHidden(string(r)))
	}
	if r, found := wrapper.Hidden(t.definition.Description); found {
		change(t.node, "description", r)
		t.definition.Description = wrapper.EscapeHidden(t.definition.Description)
	}
	ok := true
	for _, key := range []string{"input_schema", "output_schema"} {
		if schema, has := t.schemas[key]; has {
			t.schemas[key] = toolfile.WithVisibleText(schema, change)
			ok = toolfile.CheckVisible(t.schemas[key]) && ok
		}
	}
	for _, p := range t.definition.Run.Parameters {
		if r, found := wrapper.Hidden(p.Argument + p.Name); found {
			ok = t.node.Fail("tool %q: found %s in the name of a parameter; expected text in which every character can be seen",
				t.definition.Name, toolfile.HiddenCharacter(r))
		}
	}
	return ok
}
