package configs

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
)

// TestEveryKeyHasASchema: there is no key whose reader tells nothing of what it accepts.
func TestEveryKeyHasASchema(t *testing.T) {
	for _, k := range FileKinds() {
		places := 0
		k.Schema().Walk(func(path []string, s *document.Schema) {
			places++
			if s.Type == "" && len(s.AnyOf) == 0 {
				t.Errorf("%s: the schema says nothing of %s: its reader must tell what it accepts (document.Describe)", k.Name, strings.Join(path, "."))
			}
			if s.Type == "object" && s.AdditionalProperties == nil && s.Description == "" {
				t.Errorf("%s: the schema leaves %s open", k.Name, strings.Join(path, "."))
			}
		})
		if places < 5 {
			t.Errorf("%s: the schema has %d places", k.Name, places)
		}
	}
}

// compiledSchemas are the schemas of all kinds as a validator of another house reads them.
func compiledSchemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	all := map[string]*jsonschema.Schema{}
	for _, k := range FileKinds() {
		text, err := Schema(k.Name)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(SchemaBase+k.Name+".json", value); err != nil {
			t.Fatal(err)
		}
		if all[k.Name], err = c.Compile(SchemaBase + k.Name + ".json"); err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
	}
	return all
}

// editorValue is a file as an editor reads it, which knows YAML and not how strictly Callgate
// reads it.
func editorValue(data []byte) (any, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return nil, err
	}
	return jsonValue(&n)
}

// jsonValue is a node as a value that a schema is asked about.
func jsonValue(n *yaml.Node) (any, error) {
	switch n.Kind {
	case 0:
		return nil, nil
	case yaml.DocumentNode:
		return jsonValue(n.Content[0])
	case yaml.AliasNode:
		return jsonValue(n.Alias)
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, err := jsonValue(c)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := jsonValue(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			object[n.Content[i].Value] = v
		}
		return object, nil
	}
	if n.ShortTag() == "!!timestamp" {
		return n.Value, nil
	}
	var scalar any
	if err := n.Decode(&scalar); err != nil {
		return nil, err
	}
	return scalar, nil
}

// kindOf is the kind of a file by its name, or by its first key; empty where it has none.
func kindOf(name string, value any) string {
	for _, k := range FileKinds() {
		for _, pattern := range k.Names {
			of := path.Base(name)
			if strings.Contains(pattern, "/") {
				of = path.Join(path.Base(path.Dir(name)), path.Base(name))
			}
			if ok, _ := path.Match(pattern, of); ok {
				return k.Name
			}
		}
	}
	object, _ := value.(map[string]any)
	if _, is := object["tests"].([]any); is && len(object) == 1 {
		return "policy-tests"
	}
	if _, is := object["tools"].([]any); is {
		return "tools"
	}
	return ""
}

// TestSchemasAcceptWhatLoads: every file of the repository that the loader takes is valid by its
// schema, and so is each file of the configurations in archives of tests.
func TestSchemasAcceptWhatLoads(t *testing.T) {
	schemas := compiledSchemas(t)
	checked := map[string]int{}
	check := func(name string, data []byte) {
		value, err := editorValue(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		kind := kindOf(name, value)
		if kind == "" {
			t.Errorf("%s: no kind of file has this name or this content", name)
			return
		}
		checked[kind]++
		if err := schemas[kind].Validate(value); err != nil {
			t.Errorf("%s is no valid file of the kind %s: %v", name, kind, err)
		}
	}
	loaded := func(main string) {
		c, err := Load(main)
		if err != nil {
			return // what it is refused for is the subject of other tests
		}
		for _, file := range c.contents {
			if file.name == main && filepath.Base(main) != "callgate.yaml" {
				continue // the name of a main file is free; here it has its usual one
			}
			if ext := filepath.Ext(file.name); ext == ".yaml" || ext == ".json" {
				check(file.name, file.data)
			}
		}
	}
	root := ".."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != root || d.Name() == "faulty" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Name() == "callgate.yaml":
			loaded(name)
		case filepath.Ext(name) == ".txtar":
			a, err := txtar.ParseFile(name)
			if err != nil {
				return err
			}
			dir := t.TempDir()
			for _, f := range a.Files {
				if !filepath.IsLocal(f.Name) {
					continue
				}
				to := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
					return err
				}
				if err := os.WriteFile(to, f.Data, 0o600); err != nil {
					return err
				}
			}
			for _, f := range a.Files {
				if filepath.Ext(f.Name) == ".yaml" {
					loaded(filepath.Join(dir, f.Name))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The annotated files are valid with each key that is absent by default, too.
	for _, name := range []string{"callgate.yaml", "approvals.yaml", "hooks.yaml", "limits.yaml", "prices.yaml", "servers.yaml", "upstreams.yaml", "workspaces.yaml", "policy_test.yaml", "tools/demo.yaml"} {
		data, err := defaults.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		check(name, data)
	}
	for _, kind := range []string{"callgate", "tools", "policy-tests", "workspaces", "limits", "approvals", "hooks", "principals", "upstreams", "prices", "servers"} {
		if checked[kind] == 0 {
			t.Errorf("no file of the kind %s was found", kind)
		}
	}
	if checked["callgate"] < 12 || checked["tools"] < 8 {
		t.Errorf("found too few files: %v", checked)
	}
}

// absentKey is a key of an annotated file that is absent by default.
var absentKey = regexp.MustCompile(`(?m)^( *)#([a-z_]+:.*)$`)

// TestSchemasKnowAbsentKeys: the keys of the annotated main file that are absent by default are
// valid by the schema, with their values.
func TestSchemasKnowAbsentKeys(t *testing.T) {
	schemas := compiledSchemas(t)
	data, err := defaults.ReadFile("callgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, at := range absentKey.FindAllSubmatchIndex(data, -1) {
		text := string(data[:at[3]]) + string(data[at[4]:])
		if i := at[1]; i+2 < len(data) && data[at[1]-1] == ':' {
			// A block: its lines follow, each behind a #.
			block, rest := string(data[at[4]:at[1]])+"\n", string(data[at[1]+1:])
			indent := string(data[at[2]:at[3]])
			for strings.HasPrefix(rest, indent+"#  ") {
				line, more, _ := strings.Cut(rest, "\n")
				block, rest = block+indent+strings.TrimPrefix(line, indent+"#")+"\n", more
			}
			text = string(data[:at[3]]) + block + rest
		}
		value, err := editorValue([]byte(text))
		if err != nil {
			t.Errorf("with %s: %v", data[at[4]:at[5]], err)
			continue
		}
		found++
		if err := schemas["callgate"].Validate(value); err != nil {
			t.Errorf("with %s: %v", data[at[4]:at[5]], err)
		}
	}
	if found < 10 {
		t.Errorf("found %d keys that are absent by default", found)
	}
}

// yamlBlock is a fenced block of YAML in a page.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestSchemasAcceptThePages: each block of YAML in the documentation is valid by a schema that has
// its keys.
func TestSchemasAcceptThePages(t *testing.T) {
	schemas, found := compiledSchemas(t), 0
	pages, err := filepath.Glob(filepath.Join("..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllSubmatch(data, -1) {
			value, err := editorValue(bytes.ReplaceAll(block[1], []byte("…"), bytes.Repeat([]byte("0"), 64)))
			object, _ := value.(map[string]any)
			if err != nil || object["apiVersion"] != nil || len(object) == 0 {
				continue
			}
			var faults []string
			valid := slices.ContainsFunc(FileKinds(), func(k FileKind) bool {
				for key := range object {
					if k.Schema().Properties[key] == nil {
						return false
					}
				}
				err := schemas[k.Name].Validate(value)
				if err != nil {
					faults = append(faults, k.Name+": "+err.Error())
				}
				return err == nil
			})
			if valid {
				found++
			} else if len(faults) > 0 {
				t.Errorf("%s: %s\n%s", page, block[1], strings.Join(faults, "\n"))
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d blocks of configuration", found)
	}
}
