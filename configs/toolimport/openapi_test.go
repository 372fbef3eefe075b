package toolimport_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolimport"
)

// leastDocuments is what the folder must hold: a loader that finds less is broken.
const leastDocuments = 40

// TestImportOpenAPI imports every document of testdata/openapi. An archive holds
// the document (document.yaml or document.json), the options of the command line
// as its comment, and what comes of it: the tool file (tools.yaml), unless there is
// none, and what is said (said), if anything.
func TestImportOpenAPI(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "openapi", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < leastDocuments {
		t.Fatalf("found %d cases; expected at least %d", len(cases), leastDocuments)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Files) == 0 || !strings.HasPrefix(a.Files[0].Name, "document.") {
				t.Fatal("the archive does not start with a document")
			}
			found := &txtar.Archive{Comment: a.Comment, Files: a.Files[:1:1]}
			im, err := toolimport.OpenAPI(a.Files[0].Name, a.Files[0].Data, openAPIOptions(t, string(a.Comment)))
			var said strings.Builder
			var faults document.Faults
			switch {
			case errors.As(err, &faults):
				said.WriteString("fault: " + strings.ReplaceAll(err.Error(), "\n", "\nfault: ") + "\n")
			case err != nil:
				t.Fatal(err)
			default:
				for _, f := range im.Changed {
					fmt.Fprintf(&said, "changed: %v\n", f)
				}
				for _, f := range im.Refused {
					fmt.Fprintf(&said, "left out: %v\n", f)
					if f.Line < 1 {
						t.Errorf("it has no line: %v", f)
					}
				}
				if im.YAML != nil {
					found.Files = append(found.Files, txtar.File{Name: "tools.yaml", Data: im.YAML})
					loads(t, with(t, map[string]string{"tools/web.yaml": string(im.YAML), "limits.yaml": "{}\n# end\n", "policy.csv": "# end\n"}))
				}
			}
			if said.Len() > 0 {
				found.Files = append(found.Files, txtar.File{Name: "said", Data: []byte(said.String())})
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(found), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := txtar.Format(found), txtar.Format(a); !bytes.Equal(got, want) {
				t.Errorf("found\n%s\nexpected\n%s", got, want)
			}
		})
	}
}

func openAPIOptions(t *testing.T, comment string) (o toolimport.OpenAPIOptions) {
	t.Helper()
	f := flag.NewFlagSet("options", flag.ContinueOnError)
	f.StringVar(&o.Prefix, "prefix", "", "")
	f.StringVar(&o.URL, "url", "", "")
	addresses := f.String("addresses", "", "")
	var words []string
	for line := range strings.Lines(comment) {
		if strings.HasPrefix(line, "-") {
			words = append(words, strings.Fields(line)...)
		}
	}
	if err := f.Parse(words); err != nil {
		t.Fatal(err)
	}
	if *addresses != "" {
		o.Addresses = strings.Split(*addresses, ",")
	}
	return o
}

// FuzzImportOpenAPI: whatever a document holds, what comes of it loads.
func FuzzImportOpenAPI(f *testing.F) {
	cases, err := filepath.Glob(filepath.Join("testdata", "openapi", "*.txtar"))
	if err != nil || len(cases) == 0 {
		f.Fatal("found no cases", err)
	}
	for _, path := range cases {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		im, err := toolimport.OpenAPI("document", data, toolimport.OpenAPIOptions{})
		if err != nil {
			var faults document.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("it is not said where: %v", err)
			}
			return
		}
		if im.YAML == nil {
			return
		}
		var r document.Report
		entries := toolfile.Read(&r, "tools.yaml", im.YAML)
		if toolfile.BuildRegistry(&r, entries, nil); r.Err() != nil {
			t.Fatalf("%v\n%s", r.Err(), im.YAML)
		}
	})
}

// TestBranchesAreLookedAtOnce: schemas that each refer to the next one twice make no
// more work than there are schemas.
func TestBranchesAreLookedAtOnce(t *testing.T) {
	var b strings.Builder
	b.WriteString("openapi: 3.1.0\nservers: [{url: \"https://a.example\"}]\npaths: {/a: {get: {parameters: [{name: q, in: query, schema: {$ref: \"#/components/schemas/s0\"}}]}}}\ncomponents:\n  schemas:\n")
	const chain = 31
	for i := range chain {
		next := fmt.Sprintf("{$ref: \"#/components/schemas/s%d\"}", i+1)
		fmt.Fprintf(&b, "    s%d: {allOf: [%s, %s]}\n", i, next, next)
	}
	fmt.Fprintf(&b, "    s%d: {}\n", chain)
	im, err := toolimport.OpenAPI("document.yaml", []byte(b.String()), toolimport.OpenAPIOptions{})
	if err != nil || len(im.Refused) != 1 || !strings.Contains(im.Refused[0].Message, `"q" without a type`) {
		t.Errorf("%+v, %v", im, err)
	}
}
