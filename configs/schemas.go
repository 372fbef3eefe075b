package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"

	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/ratelimit/budget"
)

// FileKind is a kind of configuration file that has a schema.
type FileKind struct {
	Name  string // also of its schema, without .json
	Title string
	// Names are patterns of the names that such files usually have.
	Names []string
	read  func(document.Node)
	// annotated is the file of the built-in configuration whose comments explain the keys, and
	// whose values are the defaults; empty where there is none.
	annotated string
}

// SchemaBase is the address at which schemas are published, without the name of one.
const SchemaBase = "https://raw.githubusercontent.com/callgate/callgate/main/docs/schemas/"

// SchemaLine is the first line by which a file tells editors its schema, without a line feed.
func SchemaLine(kind string) string {
	return "# yaml-language-server: $schema=" + SchemaBase + kind + ".json"
}

// FileKinds are the kinds of configuration files, the main file first. The policy is CSV and has
// no schema.
func FileKinds() []FileKind {
	return []FileKind{
		{Name: "callgate", Title: "The main file of a configuration of Callgate", Names: []string{"callgate.yaml"},
			annotated: "callgate.yaml",
			read:      func(n document.Node) { readSettings(n) }},
		{Name: "tools", Title: "A file of tools", Names: []string{"tools/*.yaml", "tools/*.json"},
			read: func(n document.Node) { toolfile.ReadTools(n) }},
		{Name: "policy-tests", Title: "A file of tests of the policy", Names: []string{"*" + testSuffix},
			read: func(n document.Node) { lab.NewTestReader(lab.TestConfig{}, &document.Report{}).ReadTests(n) }},
		{Name: "workspaces", Title: "The workspaces file", Names: []string{"workspaces.yaml"},
			read: func(n document.Node) { readWorkspaces(n, "") }},
		{Name: "limits", Title: "The limits file", Names: []string{"limits.yaml"},
			read: func(n document.Node) { readLimits(n, &budget.Set{}) }},
		{Name: "approvals", Title: "The approvals file", Names: []string{"approvals.yaml"},
			read: func(n document.Node) { readApprovals(n) }},
		{Name: "hooks", Title: "The hooks file", Names: []string{"hooks.yaml"},
			read: func(n document.Node) { readHooks(n, nil) }},
		{Name: "principals", Title: "The principals file", Names: []string{"principals.yaml"},
			read: func(n document.Node) { readPrincipals(n) }},
		{Name: "upstreams", Title: "The upstreams file", Names: []string{"upstreams.yaml"},
			read: func(n document.Node) { readUpstreams(n) }},
		{Name: "prices", Title: "The file of prices of models", Names: []string{"prices.yaml"},
			read: func(n document.Node) { readPrices(n, &budget.Set{}) }},
		{Name: "servers", Title: "The servers file", Names: []string{"servers.yaml"},
			read: func(n document.Node) { readServers(n) }},
		{Name: "accepted-tools", Title: "What was accepted of a tool server, in data_dir/servers", Names: []string{"servers/*.json"},
			read: func(n document.Node) { lockfile.ReadPins(n, "") }},
	}
}

// Schema returns the JSON Schema of a kind of file, as text. It is made from the code that reads
// such files.
func Schema(kind string) ([]byte, error) {
	kinds := FileKinds()
	at := slices.IndexFunc(kinds, func(k FileKind) bool { return k.Name == kind })
	if at < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("found no kind of file %q%s; expected one of %s", kind, similar.DidYouMean(kind, names),
			strings.Join(names, ", "))
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(kinds[at].Schema())
	return b.Bytes(), err
}

// Schema describes what the reader of such files accepts.
func (k FileKind) Schema() *document.Schema {
	s := document.Describe(k.read)
	s.Dialect, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", SchemaBase+k.Name+".json", k.Title
	if k.annotated != "" {
		data, err := defaults.ReadFile(k.annotated)
		if err == nil { // it is in the binary
			addNotes(s, string(data))
		}
	}
	return s
}

// addNotes adds the comments of an annotated file to the keys that they explain.
func addNotes(s *document.Schema, annotated string) {
	notes := map[string]string{}
	for _, key := range Annotations(annotated) {
		if key.Note != "" {
			notes[strings.Join(key.Path, ".")] = key.Note
		}
	}
	s.Walk(func(path []string, at *document.Schema) {
		if note := notes[strings.Join(path, ".")]; note != "" {
			at.Description = note
		}
	})
}
