package report

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/wrapper"
)

// maxTitle bounds a title, in characters.
const maxTitle = 200

// Unknown describes a call whose arguments may not be shown: it was refused before they were
// known to fit a tool. A name that no tool can have is a text of the model, and stands in the title
// alone.
func Unknown(name string) (title string, d wire.ToolDetails) {
	if title = Line(name); title == "" {
		title = "A tool without a name" // an editor needs something to show
	}
	d.Kind = wire.KindOther
	if registry.ValidName(name) {
		d.Name = name
	}
	return title, d
}

// Describe describes a call of a tool whose arguments were found valid. Arguments that the schema
// marks as secret are shown nowhere. Relative paths start at the first of the project's roots.
func Describe(t *registry.Entry, arguments json.RawMessage, roots []string) (title string, d wire.ToolDetails) {
	d = wire.ToolDetails{Name: t.Name(), Kind: wire.ToolKind(t.Kind())}
	redacted, err := audit.Redact(arguments, t.Secret)
	var members map[string]any
	if err != nil || decimal.Unmarshal(redacted, &members) != nil {
		return Line(t.Name()), d
	}
	d.RawInput = redacted
	c := call{t, members, roots}
	d.Locations = c.locations()
	if t.SharedRun().Type == registry.RunACP && t.SharedRun().Tool == wire.MethodWriteTextFile {
		d.Content = c.diff()
	}
	return c.title(), d
}

// call is a call with the arguments that may be shown.
type call struct {
	tool      *registry.Entry
	arguments map[string]any
	roots     []string
}

// title is the tool and its main argument.
func (c call) title() string {
	main := c.main()
	if c.tool.SharedRun().Type == registry.RunACP {
		switch c.tool.SharedRun().Tool {
		case wire.MethodReadTextFile:
			return Line("Read " + main)
		case wire.MethodWriteTextFile:
			return Line("Write " + main)
		case wire.MethodTerminalCreate:
			return Line("Run " + c.command())
		}
	}
	if main == "" {
		return Line(c.tool.Name())
	}
	return Line(c.tool.Name() + ": " + main)
}

// main is the argument that tells one call of the tool from another: the first path, else the
// first text among those that are required, else among the others.
func (c call) main() string {
	for _, v := range c.tool.Boundaries(c.arguments) {
		if v.Kind == "path" && !c.tool.Secret(v.Path) {
			return v.Value
		}
	}
	var schema struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	_ = json.Unmarshal(c.tool.InputSchema(), &schema) // what cannot be read states none
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		if !slices.Contains(schema.Required, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range append(schema.Required, names...) {
		if text, ok := c.arguments[name].(string); ok && text != "" && !c.tool.Secret([]string{name}) {
			return text
		}
	}
	return ""
}

// command is the program of a command with its arguments.
func (c call) command() string {
	command, _ := c.arguments["command"].(string)
	list, _ := c.arguments["args"].([]any)
	args := make([]string, len(list))
	for i, each := range list {
		args[i], _ = each.(string)
	}
	return CommandLine(command, args...)
}

// CommandLine is the program of a command with its arguments, as a user reads it; an argument that
// holds a space is quoted.
func CommandLine(command string, args ...string) string {
	var b strings.Builder
	b.WriteString(command)
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\r\n\"'\\") {
			arg = strconv.Quote(arg)
		}
		b.WriteString(" " + arg)
	}
	return b.String()
}

// locations are the files that the arguments name, with the line where one file and one line are
// named.
func (c call) locations() []wire.ToolLocation {
	var found []wire.ToolLocation
	for _, v := range c.tool.Boundaries(c.arguments) {
		if v.Kind != "path" || c.tool.Secret(v.Path) {
			continue
		}
		if path, ok := c.absolute(v.Value); ok && len(found) < wire.MaxItems {
			found = append(found, wire.ToolLocation{Path: path})
		}
	}
	if number, ok := c.arguments["line"].(json.Number); ok && len(found) == 1 && !c.tool.Secret([]string{"line"}) {
		if n, err := strconv.ParseUint(string(number), 10, 32); err == nil && n >= 1 && n <= math.MaxUint32 {
			at := uint32(n)
			found[0].Line = &at
		}
	}
	return found
}

func (c call) absolute(path string) (string, bool) {
	if filepath.IsAbs(path) {
		return path, true
	}
	if len(c.roots) == 0 {
		return "", false
	}
	return filepath.Join(c.roots[0], path), true
}

// diff is the new text of a file. The text before it is the editor's, and not known here: see Replacing.
func (c call) diff() []wire.ToolContent {
	path, isPath := c.arguments["path"].(string)
	text, isText := c.arguments["content"].(string)
	path, ok := c.absolute(path)
	if !isPath || !isText || !ok || c.tool.Secret([]string{"path"}) || c.tool.Secret([]string{"content"}) {
		return nil
	}
	return []wire.ToolContent{{Type: wire.Diff, Path: path, NewText: text}}
}

// Replacing is the content of a call that writes a file, with the text that it replaces, which is nil of a
// new file. Where that is not known, the content says so, since a diff without it is one of a new file.
func Replacing(content []wire.ToolContent, old *string, known bool) []wire.ToolContent {
	content = slices.Clone(content)
	for i := range content {
		if content[i].Type == wire.Diff {
			content[i].OldText = old
		}
	}
	if !known {
		content = append(content, wire.TextContent("The text that this replaces could not be read, and is not shown."))
	}
	return content
}

// Result is the end of a call: its output, or the message of its refusal. The content of a call
// that completed as a diff is left as it was. A command that was killed has an output, and failed.
func Result(t *registry.Entry, r wrapper.ToolResult) wire.ToolDetails {
	if r.Refusal != nil {
		d := Refused(r.Refusal)
		d.RawOutput = r.Object
		return d
	}
	d := wire.ToolDetails{Status: wire.Completed, RawOutput: r.Object}
	if t != nil && t.SharedRun().Type == registry.RunACP && t.SharedRun().Tool == wire.MethodWriteTextFile {
		return d
	}
	d.Content = []wire.ToolContent{wire.TextContent(wrapper.EscapeText(textOf(r.Output)))}
	if t != nil && t.SharedRun().Type == registry.RunACP && killed(r.Output) {
		d.Status = wire.Failed
	}
	return d
}

// killed reports whether the output of a command says that it was killed: its turn was cancelled, or its time
// was over.
func killed(output json.RawMessage) bool {
	var command struct {
		Cancelled bool
		TimedOut  bool `json:"timed_out"`
	}
	return json.Unmarshal(output, &command) == nil && (command.Cancelled || command.TimedOut)
}

// Refused is the end of a call that was refused, with the reason as the model reads it.
func Refused(refused *refusal.Error) wire.ToolDetails {
	return wire.ToolDetails{
		Status: wire.Failed, Content: []wire.ToolContent{wire.TextContent(wrapper.EscapeText(string(refused.Code) + ": " +
			refused.Message))},
	}
}

// textOf is the output itself where it is one text, as of a file or a command, and else its
// JSON.
func textOf(output json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(output, &members) == nil {
		for _, name := range []string{"value", "content", "output"} {
			var text *string
			if json.Unmarshal(members[name], &text) == nil && text != nil && (len(members) == 1 || name == "output") {
				return *text
			}
		}
	}
	return string(output)
}

// Line is a text in one line, with hidden characters written out, and not longer than a title.
func Line(s string) string {
	short := []rune(strings.ToValidUTF8(s[:min(len(s), 16*maxTitle)], ""))
	cut := len(s) > 16*maxTitle || len(short) > maxTitle
	text := wrapper.EscapeText(strings.Join(strings.Fields(string(short[:min(len(short), maxTitle)])), " "))
	if cut {
		text += "…"
	}
	return text
}
