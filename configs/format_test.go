package configs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// ownFiles are the complete configuration files of the repository, and those of archives of tests.
func ownFiles(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	add := func(name string, data []byte) {
		if bytes.HasSuffix(data, []byte("\n"+document.EndLine+"\n")) {
			all[name] = data
		}
	}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && name != ".." || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".yaml", ".csv":
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			add(name, data)
		case ".txtar":
			a, err := txtar.ParseFile(name)
			if err != nil {
				return err
			}
			for file, f := range archived(t, a) {
				add(name+"/"+file, []byte(f.Data))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// archived are the configuration files of an archive.
func archived(t testing.TB, a *txtar.Archive) map[string]configtest.File {
	t.Helper()
	kept := &txtar.Archive{}
	for _, f := range a.Files {
		if name, how, _ := strings.Cut(f.Name, " "); (how == "" || how == "(quoted)") && (filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".csv") {
			kept.Files = append(kept.Files, f)
		}
	}
	files, _ := configtest.ReadFiles(t, kept)
	return files
}

// holdsFormat checks what Format promises of a file, and returns whether it was formatted.
func holdsFormat(t testing.TB, name string, data []byte) bool {
	t.Helper()
	out, err := Format(name, data)
	if err != nil {
		return false
	}
	again, err := Format(name, out)
	if err != nil || !bytes.Equal(again, out) {
		t.Errorf("%s: formatting the result again gives (%v)\n%s\nand not\n%s", name, err, again, out)
	}
	if !bytes.HasSuffix(out, []byte("\n"+document.EndLine+"\n")) && !bytes.Equal(out, []byte(document.EndLine+"\n")) {
		t.Errorf("%s: the result has no end line:\n%s", name, out)
	}
	if filepath.Ext(name) == ".csv" {
		return true
	}
	var r document.Report
	before, _ := document.ReadYAML(&r, name, data)
	after, ok := document.ReadYAML(&r, name, out)
	if !ok {
		t.Errorf("%s: the result is not read: %v", name, r.Err())
		return true
	}
	one, _ := before.JSON()
	other, _ := after.JSON()
	if !bytes.Equal(one, other) {
		t.Errorf("%s: it means\n%s\nand not\n%s", name, other, one)
	}
	return true
}

// TestFormatKeepsMeaning: each file of the repository that is read is formatted, means what it
// did, and stays when it is formatted again.
func TestFormatKeepsMeaning(t *testing.T) {
	formatted, refused := 0, 0
	for name, data := range ownFiles(t) {
		switch {
		case holdsFormat(t, name, data):
			formatted++
		case !strings.Contains(name, "faulty"):
			var r document.Report
			if _, ok := document.ReadYAML(&r, name, data); ok && filepath.Ext(name) == ".yaml" {
				_, err := Format(name, data)
				t.Errorf("%v", err)
			}
			refused++
		}
	}
	if formatted < 300 {
		t.Errorf("only %d files were formatted, and %d refused", formatted, refused)
	}
}

func TestFormat(t *testing.T) {
	for name, c := range map[string]struct{ file, from, to string }{
		"comments, spaces and empty lines": {"a.yaml",
			"# of the file\n\n\n\nserver:\n    listen: 127.0.0.1:8080    # here\n    #hosts: [a]\n\n\nauth:   {mode: none}  \n\n# end\n",
			"# of the file\n\nserver:\n  listen: 127.0.0.1:8080 # here\n  #hosts: [a]\n\nauth: {mode: none}\n# end\n"},
		"an empty line in a text stays": {"a.yaml",
			"tools:\n- name: a\n  description: |\n     one\n\n\n     two\n\n  kind: read\n# end\n",
			"tools:\n  - name: a\n    description: |\n      one\n\n\n      two\n\n    kind: read\n# end\n"},
		"quotes stay": {"a.yaml", "a: 'x'\nb:  \"y\"\nc: \"1\"\n# end\n", "a: 'x'\nb: \"y\"\nc: \"1\"\n# end\n"},
		"a policy": {"policy.csv",
			"# p, subject, domain, tool, when, effect\np,a , x/y,web.*,,allow\n\n\np, role:long,*,  a.b , \"args.a == \"\"x\"\"\", deny\ng, a, role:long, x/y\n# end\n",
			"# p, subject, domain, tool, when,            effect\np, a,         x/y, web.*, ,                  allow\n\np, role:long, *,   a.b,   \"args.a == \"\"x\"\"\", deny\ng, a, role:long, x/y\n# end\n"},
		"a policy with line ends of Windows": {"policy.csv", "p,a ,*,*,,allow\r\n\r\n# x \r\n# end\r\n", "p, a, *, *, , allow\n\n# x\n# end\n"},
		"nothing but comments":               {"a.yaml", "# a: 1\n\n\n# b: 2\n# end\n", "# a: 1\n\n# b: 2\n# end\n"},
		"nothing at all":                     {"a.yaml", "# end\n", "# end\n"},
	} {
		out, err := Format(c.file, []byte(c.from))
		if err != nil || string(out) != c.to {
			t.Errorf("%s: found %v\n%s\nexpected\n%s", name, err, out, c.to)
		}
	}
	json, err := Format("a.json", []byte(`{"tools":[{"name":"a","n":1.50}]}`))
	if err != nil || string(json) != "{\n  \"tools\": [\n    {\n      \"name\": \"a\",\n      \"n\": 1.50\n    }\n  ]\n}\n" {
		t.Errorf("JSON: found %v\n%s", err, json)
	}
}

// TestFormatMovesNoComment: a comment stays where it is, or the file is left as it is.
func TestFormatMovesNoComment(t *testing.T) {
	for from, ok := range map[string]bool{
		"a:\n  b: 1\n  # x\n  # y\n  c: 2\n# end\n":                          true,
		"a:\n  # x\n  b: 1\n\n  # y\n\n  c: 2\n# end\n":                      true,
		"tools:\n  - name: a # x\n  # y\n  - name: b\n# z\n# end\n":          true,
		"a:\n  # x\n# y\n  b: 1\n  c: 2\n# end\n":                            true,
		"a:\n  b:\n  # x\n# y\n    c: 1\n    d: 2\n# end\n":                  false,
		"a: 'x\n  y #1 z\n  u'\nb: \"#2 #3\" # c\n# end\n":                   true, // no comments but the last
		"a: |\n  # x\n  y #1 z\nb: {c: '#2', d: 1}\n# end\n":                 true,
		"rows:\n  - name: a\n    is: deny\n  # x\n# y\n  - name: b\n# end\n": false,
	} {
		out, err := Format("a.yaml", []byte(from))
		if (err == nil) != ok {
			t.Errorf("%q: %v\n%s", from, err, out)
		}
		if plain := strings.NewReplacer(" ", "", "\n", "").Replace; err == nil && plain(string(out)) != plain(from) {
			t.Errorf("%q: something moved:\n%s", from, out)
		}
	}
	if out, err := Format("a.json", []byte(`{"a":"x # y","b":1}`)); err != nil {
		t.Errorf("JSON with a # in a text: %v\n%s", err, out)
	}
}

// FuzzFormat: whatever is formatted means what it did, and stays when it is formatted again.
func FuzzFormat(f *testing.F) {
	for name, data := range ownFiles(f) {
		if len(data) < 1000 && !strings.Contains(name, "txtar") {
			f.Add(filepath.Ext(name) == ".csv", data)
		}
	}
	f.Fuzz(func(t *testing.T, policy bool, data []byte) {
		name := "a.yaml"
		if policy {
			name = "a.csv"
		}
		holdsFormat(t, name, data)
	})
}

func TestSeal(t *testing.T) {
	for from, to := range map[string]string{
		"a: 1\n":              "a: 1\n# end\n",
		"a: 1":                "a: 1\n# end\n",
		"a: 1\n\n\n":          "a: 1\n# end\n",
		"a: 1\n# end\n":       "a: 1\n# end\n",
		"a: 1\n# end":         "a: 1\n# end",
		"a: 1\n# end\n\n \n":  "a: 1\n# end\n",
		"a: 1\r\nb: 2\r\n":    "a: 1\r\nb: 2\n# end\n",
		"a: |\n  x\n\n":       "a: |\n  x\n# end\n",
		"a: |+\n  x\n\n\n":    "a: |+\n  x\n\n\n# end\n",
		"a: |\n  x  ":         "a: |\n  x  \n# end\n",
		"":                    "",
		"a: [1\n":             "",
		"a: 1\n# end\nb: 2\n": "",
		"a: 1\na: 2\n":        "",
	} {
		out, err := Seal("a.yaml", []byte(from))
		if (err != nil) != (to == "") || err == nil && string(out) != to {
			t.Errorf("%q: found %q, %v; expected %q", from, out, err, to)
		}
		if err == nil {
			if again, err := Seal("a.yaml", out); err != nil || !bytes.Equal(again, out) {
				t.Errorf("%q: sealing it again gives %q, %v", from, again, err)
			}
		}
	}
	if out, err := Seal("policy.csv", []byte("p, a, x/y, b, , allow\n")); err != nil || string(out) != "p, a, x/y, b, , allow\n# end\n" {
		t.Errorf("a policy: found %q, %v", out, err)
	}
	if _, err := Seal("policy.csv", []byte("p, \"a\n")); err == nil {
		t.Error("a policy with an open quote is sealed")
	}
	if _, err := Seal("a.json", []byte("{}")); err == nil {
		t.Error("JSON is sealed")
	}
}
