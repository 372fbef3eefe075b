package configs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
)

// TestExample: the annotated example is what the fields of the structs of keys say: their comments,
// their defaults and their examples. `make reference` writes it.
func TestExample(t *testing.T) {
	s := defaultSettings()
	e := example{t: t, comments: map[string]map[string]string{}}
	e.WriteString("# The configuration of Callgate, annotated. Every key is optional; the values here\n" +
		"# are the defaults. Relative paths start at the file they stand in. Unknown keys\n" +
		"# are errors. Keys that are absent by default stand behind a # without a space.\n")
	e.section(reflect.ValueOf(s), "", false)
	e.WriteString(document.EndLine + "\n")
	if os.Getenv("CALLGATE_WRITE_REFERENCE") != "" {
		if err := os.WriteFile("callgate.yaml", []byte(e.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if found, err := os.ReadFile("callgate.yaml"); err != nil || string(found) != e.String() {
		t.Errorf("configs/callgate.yaml is stale (%v): run `make reference`", err)
	}
}

// example is the annotated example while it is written.
type example struct {
	strings.Builder
	t        *testing.T
	comments map[string]map[string]string // by package, of Type.Field
}

// section writes the keys of a struct; absent says that they stand behind a # already.
func (e *example) section(v reflect.Value, indent string, absent bool) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		key, tagged := field.Tag.Lookup("key")
		text, stated := field.Tag.Lookup("example")
		if !tagged {
			continue
		}
		if key == "" {
			e.section(value, indent, absent)
			continue
		}
		if value.Kind() == reflect.Pointer {
			value = reflect.New(value.Type().Elem()).Elem()
		}
		comment := e.comment(v.Type(), field.Name)
		if indent == "" && comment != "" {
			e.WriteString("\n")
		}
		for line := range strings.Lines(comment) {
			e.WriteString(indent + "# " + line)
		}
		mark := ""
		if stated && !absent {
			mark = "#"
		} else if strings.HasPrefix(text, "#") {
			mark, text = "#", text[1:]
		}
		e.WriteString(indent + mark + key + ":")
		switch {
		case text != "":
			e.WriteString(" " + text + "\n")
		case value.Kind() == reflect.Struct:
			e.WriteString("\n")
			e.section(value, indent+mark+"  ", absent || stated)
		default:
			e.WriteString(" " + e.text(key, field.Tag, value) + "\n")
		}
	}
}

// text is a default as YAML writes it on one line.
func (e *example) text(key string, tag reflect.StructTag, value reflect.Value) string {
	if words := strings.Fields(tag.Get("words")); value.Kind() == reflect.Bool && len(words) > 0 {
		return map[bool]string{false: words[0], true: words[1]}[value.Bool()]
	}
	if value.Kind() == reflect.String && value.Len() == 0 || value.Kind() == reflect.Slice && value.Len() == 0 {
		e.t.Errorf("the key %s has no default; expected an example in its tag", key)
	}
	shown := value.Interface()
	if d, is := shown.(time.Duration); is {
		shown = d.String()
	}
	var node yaml.Node
	if err := node.Encode(shown); err != nil {
		e.t.Fatal(err)
	}
	node.Style = yaml.FlowStyle
	data, err := yaml.Marshal(&node)
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// comment is that of a field in the source, line by line.
func (e *example) comment(of reflect.Type, field string) string {
	if e.comments[of.PkgPath()] == nil {
		e.comments[of.PkgPath()] = comments(e.t, filepath.Join("..", strings.TrimPrefix(of.PkgPath(), path.Dir(reflect.TypeFor[Settings]().PkgPath()))))
	}
	return e.comments[of.PkgPath()][of.Name()+"."+field]
}

// comments are those of all fields of the structs of a package, by Type.Field.
func comments(t *testing.T, dir string) map[string]string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: found no source (%v)", dir, err)
	}
	all := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				names := field.Names
				if at, embedded := field.Type.(*ast.Ident); embedded && len(names) == 0 {
					names = []*ast.Ident{at}
				}
				for _, name := range names {
					all[spec.Name.Name+"."+name.Name] = field.Doc.Text()
				}
			}
			return true
		})
	}
	return all
}
