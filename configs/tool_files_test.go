package configs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

// faultyTools are tool files without their end line, of which all but the last are faulty; %s is a name.
var faultyTools = []string{
	"tools:\n  - {name: %[1]s, input_schema: {type: object}, run: {type: demo, tool: 7, colour: red}, effects: once}\n",
	"tools:\n  - name: \"%s\n    run: {type: demo}\n",
	"tools:\n  - {name: %s, input_schema: {type: object, minProperties: 010, maxProperties: .5}, run: {type: demo}}\n# end\n#",
	"tools:\n  - {name: %s, input_schema: , run: {type: http, url: \"http://127.0.0.1\", credential: {in: nowhere, valu: 1}}}\n",
	"tools:\n  - &a {name: %s, description: \"a\u200bb\", input_schema: {type: object}, run: {type: demo}}\n  - *a\n",
	"tools:\n  - {name: %s, description: \"a\u200bb\", title: \"c\u200bd\", input_schema: {type: object}, run: [demo]}\n  - 5\n",
	"tools: {%s: 1}\n%% no comment\n",
	"tools:\n  - {name: %s, input_schema: {type: object}, run: {type: demo}}\n",
}

// TestFaultsOfToolFiles: the faults of many files are those of files that are read one after the other, and
// so is their order, whichever of them is read first.
func TestFaultsOfToolFiles(t *testing.T) {
	for _, count := range []int{2, 9, 120} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			files := configtest.Base(t)
			for i := range count {
				files[fmt.Sprintf("tools/x%03d.yaml", i)] = configtest.File{Data: fmt.Sprintf(faultyTools[i%len(faultyTools)], fmt.Sprintf("x.t%d", i)) + "# end\n"}
			}
			main := configtest.Write(t, t.TempDir(), files)
			var inTurn document.Report
			for i := range count {
				file := fmt.Sprintf("tools/x%03d.yaml", i)
				toolfile.Read(&inTurn, filepath.Join(filepath.Dir(main), file), []byte(files[file].Data))
			}
			want := inTurn.Err().Error()
			for range 5 {
				if _, err := Load(main); err == nil || err.Error() != want {
					t.Fatalf("found\n%v\nexpected\n%s", err, want)
				}
			}
		})
	}
}

// TestFaultsOfTools: what is wrong with the tools of files that were read is reported at their lines, tool by
// tool.
func TestFaultsOfTools(t *testing.T) {
	const wrong = `
  - name: %[1]s.first
    input_schema: {type: object, properties: {a: {type: strin}, b: {minimum: low}}}
    run: {type: demo}
  - name: %[1]s.second
    effect: twice
    input_schema: {type: object}
    run:
      type: demo
      url: http://127.0.0.1
`
	const right = `
  - name: x.same
    input_schema: {type: object}
    run: {type: demo}
`
	var faults strings.Builder
	for i := range 3 {
		fmt.Fprintf(&faults, `
tools/x%[1]d.yaml:3:51: tool "x%[1]d.first": input_schema at /properties/a/type: found "strin"; expected a type, or a list of types: string, integer, number, boolean, array, object or null
tools/x%[1]d.yaml:3:69: tool "x%[1]d.first": input_schema at /properties/b/minimum: found "low"; expected a number
tools/x%[1]d.yaml:6:5: tool "x%[1]d.second": effect: found "twice"; expected one of read, idempotent, once
tools/x%[1]d.yaml:10:12: tool "x%[1]d.second": run.url: found a url; expected none with the type "demo"`, i)
	}
	for what, c := range map[string]struct{ tools, want string }{
		"faults of definitions": {wrong, faults.String()},
		"the same tools": {right, `
tools/x1.yaml:2:5: found the tool "x.same" a second time in the same version; expected name and version together once (first at tools/x0.yaml:2)
tools/x2.yaml:2:5: found the tool "x.same" a second time in the same version; expected name and version together once (first at tools/x0.yaml:2)`},
	} {
		t.Run(what, func(t *testing.T) {
			files := configtest.Base(t)
			for i := range 3 {
				data := c.tools
				if strings.Contains(data, "%") {
					data = fmt.Sprintf(data, fmt.Sprintf("x%d", i))
				}
				files[fmt.Sprintf("tools/x%d.yaml", i)] = configtest.File{Data: "tools:" + data + "# end\n"}
			}
			dir := t.TempDir()
			main := configtest.Write(t, dir, files)
			for range 5 {
				_, err := Load(main)
				if found := "\n" + strings.ReplaceAll(fmt.Sprint(err), dir+string(filepath.Separator), ""); found != c.want {
					t.Fatalf("found\n%s\nexpected\n%s", found, c.want)
				}
			}
		})
	}
}
