package starter

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/registry"
)

// maxServerName bounds the name of a server in a servers file.
const maxServerName = 32

// FromServer is a server by its command or its URL.
func FromServer(s Server) (Tools, error) {
	if len(s.Name) > maxServerName || strings.Contains(s.Name, ".") || !registry.ValidName(s.Name) {
		return Tools{}, fmt.Errorf("--name is %q; expected letters, digits, _ and -, at most %d", s.Name, maxServerName)
	}
	if len(s.Command) == 0 {
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			meant := ""
			if strings.HasSuffix(s.URL, ".json") {
				meant = "; for the file of an MCP client, write --from " + s.URL
			}
			return Tools{}, fmt.Errorf("the server %q is %q; expected its URL, such as https://mcp.example.com/mcp, or -- and the command that starts it%s", s.Name, s.URL, meant)
		}
		if err := checkQuery(u); err != nil {
			return Tools{}, fmt.Errorf("the server %q: %w", s.Name, err)
		}
	}
	if err := checkArguments(s.Command); err != nil {
		return Tools{}, fmt.Errorf("the server %q: %w", s.Name, err)
	}
	return Tools{Servers: []Server{s}}, nil
}

// FromClientFile are the servers of a file of a client: claude_desktop_config.json, .mcp.json,
// .vscode/mcp.json and their like. It is read strictly. Notes have no value of a variable, a
// header or an argument.
func FromClientFile(name string, data []byte) (Tools, error) {
	r := document.Report{Unlimited: true}
	root, ok := document.ReadJSON(&r, name, data)
	if !ok {
		return Tools{}, r.Err()
	}
	_, list, ok := root.Child("mcpServers")
	if !ok {
		_, list, ok = root.Child("servers") // of Visual Studio Code
	}
	if !ok || !list.IsMapping() {
		const expected = "expected an object with the member mcpServers or servers"
		switch kind, _ := toolimport.LooksLike(name, data); kind {
		case toolimport.KindRequest:
			root.Fail("found %s; %s: --from request %s reads it", kind, expected, name)
		case toolimport.KindMCP:
			root.Fail("found %s; %s: callgate tools import mcp %s reads it", kind, expected, name)
		default:
			root.Fail("found no servers; %s", expected)
		}
		return Tools{}, r.Err()
	}
	t := Tools{}
	taken := map[string]bool{}
	list.Members("servers", func(key, value document.Node) {
		c := clientServer{node: value, name: key.Value}
		c.server.Name = serverName(key.Value)
		switch err := c.read(); {
		case err != nil:
			t.Notes = append(t.Notes, "left out: "+value.Fault("the server %q: %v", key.Value, err).Error())
			t.LeftOut++
		case taken[c.server.Name]:
			t.Notes = append(t.Notes, "left out: "+value.Fault("the server %q: its name here, %s, is that of another one", key.Value,
				c.server.Name).Error())
			t.LeftOut++
		default:
			taken[c.server.Name] = true
			t.Servers = append(t.Servers, c.server)
			t.Notes = append(t.Notes, c.notes...)
		}
	})
	if err := r.Err(); err != nil {
		return t, err
	}
	if len(t.Servers) == 0 {
		return t, fmt.Errorf("%s has no server that can be taken over", name)
	}
	return t, nil
}

// serverName is a name as a servers file has it: other characters become -.
func serverName(theirs string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && registry.ValidName(string(r)) {
			return r
		}
		return '-'
	}, theirs)
	if name = strings.Trim(name, "-"); name == "" {
		name = "server"
	}
	return name[:min(len(name), maxServerName)]
}

// clientServer is one server of a client's file.
type clientServer struct {
	node   document.Node
	name   string
	server Server
	notes  []string
}

func (c *clientServer) note(n document.Node, format string, args ...any) {
	c.notes = append(c.notes, "changed: "+n.Fault("the server %q: %s", c.name, fmt.Sprintf(format, args...)).Error())
}

// read reads the server. An error has no value of the file.
func (c *clientServer) read() error {
	n := c.node
	if !n.IsMapping() {
		return errors.New("expected an object")
	}
	if _, stated, ok := n.Child("disabled"); ok && stated.Value != "false" {
		return errors.New("it is disabled")
	}
	n.Members("a server", func(key, _ document.Node) {
		if !slices.Contains([]string{"type", "command", "args", "env", "url", "headers", "disabled", "cwd", "envFile"}, key.Value) {
			c.note(key, "%s has no meaning here, and is left out", key.Excerpt())
		}
	})
	kind := n.StringAt("type")
	command, address := n.StringAt("command"), n.StringAt("url")
	switch {
	case command != "" && address != "" || command == "" && address == "":
		return errors.New("expected either command or url")
	case command != "" && kind != "" && kind != "stdio", address != "" && kind == "stdio":
		return fmt.Errorf("its type is not that of a server with a %s", map[bool]string{true: "command", false: "url"}[command != ""])
	case kind == "sse":
		return errors.New("the transport sse is not supported; expected http, which replaced it in 2025")
	case command != "":
		return c.command(command)
	}
	return c.address(address)
}

func (c *clientServer) command(program string) error {
	c.server.Command = []string{program}
	if _, args, ok := c.node.Child("args"); ok {
		if !args.IsList() {
			return errors.New("args is no list")
		}
		for i := range args.Content {
			arg := args.With(args.Content[i])
			switch {
			case !arg.IsString():
				return fmt.Errorf("args/%d is no string", i)
			case arg.Value == "":
				return fmt.Errorf("args/%d is empty, which servers.yaml cannot say", i)
			}
			c.server.Command = append(c.server.Command, arg.Value)
		}
	}
	if base := strings.TrimSuffix(path.Base(strings.ReplaceAll(program, `\`, "/")), ".exe"); base == "callgate" {
		return errors.New("it is Callgate itself")
	}
	for _, arg := range c.server.Command {
		if strings.Contains(arg, "${") {
			return errors.New("its command has ${…}, which only the client can fill in; write the value")
		}
	}
	if err := checkArguments(c.server.Command); err != nil {
		return err
	}
	if c.node.Has("cwd") {
		return errors.New("it has cwd; a server is started in the folder of servers.yaml")
	}
	if c.node.Has("envFile") {
		return errors.New("it has envFile; state the variables in env")
	}
	_, env, ok := c.node.Child("env")
	if !ok {
		return nil
	}
	return c.members(env, "env", func(key, value document.Node) error {
		if !variableName.MatchString(key.Value) {
			return errors.New("env has a name that is none of a variable")
		}
		v, err := c.variable(key.Value, key.Value, value)
		c.server.Env = append(c.server.Env, v)
		return err
	})
}

// members reads the members of an object that are strings.
func (c *clientServer) members(n document.Node, of string, read func(key, value document.Node) error) error {
	if !n.IsMapping() {
		return fmt.Errorf("%s is no object", of)
	}
	var err error
	n.Members(of, func(key, value document.Node) {
		switch {
		case err != nil:
		case !value.IsString():
			err = fmt.Errorf("%s/%s is no string", of, key.Value)
		default:
			err = read(key, value)
		}
	})
	return err
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// ofEnvironment is a reference to a variable: ${NAME}, or ${env:NAME}.
	ofEnvironment = regexp.MustCompile(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}$`)
	// ofInput is a value that Visual Studio Code asks its user for.
	ofInput = regexp.MustCompile(`^\$\{input:[^}]*\}$`)
)

// variable is a value, or the place that it refers to. asked is the variable that takes the place
// of a question.
func (c *clientServer) variable(name, prompted string, n document.Node) (Variable, error) {
	v := Variable{Name: name}
	switch {
	case ofEnvironment.MatchString(n.Value):
		v.Place = "env:" + ofEnvironment.FindStringSubmatch(n.Value)[1]
	case ofInput.MatchString(n.Value):
		v.Place = "env:" + prompted
		c.note(n, "the client asks its user for %s; here the variable %s of the environment has it", name, prompted)
	case strings.Contains(n.Value, "${"):
		return v, fmt.Errorf("the value of %s has ${…} beside other text; write the value", name)
	default:
		v.Value = strings.TrimRight(n.Value, "\r\n") // as files of secrets are read
		if v.Value != n.Value {
			c.note(n, "the value of %s ends with an end of line, which is left out", name)
		}
	}
	return v, nil
}

// ofKey is an argument whose value is a key, by its name: an option, with its value or before it, or a
// variable, as docker run takes one. The file of a key is none.
var ofKey = regexp.MustCompile(`(?i)^(-{0,2}[a-z0-9_.-]*(?:key|token|secret|passw|credential|authorization)[a-z0-9_.-]*)(?:([=:]).+)?$`)

// checkArguments refuses arguments of a program that may hold a secret, which servers.yaml would show. The error
// has the name of one, and no value.
func checkArguments(command []string) error {
	for i, arg := range command {
		if i == 0 {
			continue
		}
		found := ofKey.FindStringSubmatch(arg)
		address, err := url.Parse(arg)
		switch {
		case err == nil && address.Host != "" && (address.User != nil || checkQuery(address) != nil):
			return errors.New("an address in its args may hold a key" + shown)
		case found == nil || fileOfKey.MatchString(found[1]):
		case found[2] != "", strings.HasPrefix(arg, "-") && i+1 < len(command) && !strings.HasPrefix(command[i+1], "-"):
			return fmt.Errorf("its argument %s may hold a key"+shown, found[1])
		}
	}
	return nil
}

// fileOfKey is the name of an argument that says where a key is.
var fileOfKey = regexp.MustCompile(`(?i)[_.-](file|path|dir|env|name|id)$`)

// shown is what is wrong with a key among arguments.
const shown = ", which servers.yaml and the list of processes would show; " +
	"expected it in a variable that the program reads, under env. If it is no key, write the server into servers.yaml yourself"

// checkQuery refuses a URL whose query may hold a secret, which servers.yaml would show. The error has
// nothing of it. So does one that cannot be read as members alone, of which servers take more than was looked at.
func checkQuery(u *url.URL) error {
	members, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		members = url.Values{"key": nil}
	}
	for name, values := range members {
		if mayBeKey(name, values) {
			return errors.New("its url has a member behind ? that may be a key, which servers.yaml would show; expected a header Authorization: Bearer. If it is no key, write the server into servers.yaml yourself")
		}
	}
	return nil
}

// mayBeKey reports whether a member of a query may hold a secret: by its name, or by a name or a value as
// nobody chooses one.
func mayBeKey(name string, values []string) bool {
	for _, word := range []string{"key", "token", "secret", "auth", "pass", "pwd", "sig", "credential", "jwt", "code", "session"} {
		if strings.Contains(strings.ToLower(name), word) {
			return true
		}
	}
	return slices.Contains([]string{"pat", "pw"}, strings.ToLower(name)) || opaque.MatchString(name) ||
		slices.ContainsFunc(values, opaque.MatchString)
}

// opaque is a value of letters and digits that is longer than words are, or begins as keys do.
var opaque = regexp.MustCompile(`^([A-Za-z0-9+/=_.-]{20,}|(sk|pk|rk|gh[a-z]|github_pat|glpat|xox[a-z]|tvly)[-_].+)$`)

// address takes over a server with a URL.
func (c *clientServer) address(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Contains(text, "${") {
		return errors.New("its url is none of http or https, or has ${…}")
	}
	if u.Fragment != "" {
		return errors.New("its url has a fragment, behind #, which no server gets")
	}
	if u.User != nil {
		return errors.New("its url has a password; expected a header Authorization")
	}
	if err := checkQuery(u); err != nil {
		return err
	}
	c.server.URL = text
	_, headers, ok := c.node.Child("headers")
	if !ok {
		return nil
	}
	return c.members(headers, "headers", func(key, value document.Node) error {
		token, bearer := strings.CutPrefix(value.Value, "Bearer ")
		if !strings.EqualFold(key.Value, "Authorization") || !bearer {
			return fmt.Errorf("it is asked with the header %s; expected only Authorization: Bearer", key.Value)
		}
		stated := *value.Node
		stated.Value = token
		if token == "" {
			return errors.New("its header Authorization has no token")
		}
		v, err := c.variable("authorization", strings.ToUpper(strings.ReplaceAll(c.server.Name, "-", "_"))+"_TOKEN", value.With(&stated))
		c.server.Token = &v
		return err
	})
}
