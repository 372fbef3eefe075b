package configs

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/upstream"
)

// Config is one whole configuration, validated. It is immutable.
type Config struct {
	Settings
	Tools      *registry.Registry
	Policy     *policy.Policy // what the policy file says
	Workspaces policy.Workspaces
	Limits     *ratelimit.Limits
	Principals []Principal
	Keys       *identity.APIKeys // of the principals
	Upstreams  *upstream.Set     // nil where there are no upstreams
	Servers    []ToolServer
	Pins       map[string][]Pin // what was accepted of each server that has a file of them
	Agents     map[string]bool  // that a project or a principal names
	// Digest is SHA-256, in hex, over the names and bytes of all files, relative
	// to the main one: replicas with equal files have equal digests.
	Digest string
	// Files are the files that it was read from, the main one first.
	Files    []string
	Warnings []*Fault

	unshared *Fault // why the limits cannot be counted in Redis; nil where they can
}

// Load reads the configuration whose main file is path; empty means the
// embedded default. Its error is Faults, which name every file and line.
func Load(path string) (*Config, error) {
	if path == "" {
		return load(builtin{}, builtinName+"callgate.yaml", "")
	}
	return load(disk{root: filepath.Dir(path)}, path, "")
}

// Default is the embedded default with its data in another folder.
func Default(dataDir string) (*Config, error) {
	return load(builtin{}, builtinName+"callgate.yaml", dataDir)
}

// loader gathers what one load reads.
type loader struct {
	source
	data   string // the folder of what was accepted of servers; "" is that of the configuration
	report report
	files  []string
	digest [][]byte // one entry a file: its relative name and its bytes
}

func load(from source, main, dataDir string) (*Config, error) {
	return (&loader{source: from}).load(main, dataDir)
}

func (l *loader) load(main, dataDir string) (*Config, error) {
	data, ok := l.file(main, nil)
	if !ok {
		return nil, l.report.err()
	}
	root, ok := readYAML(&l.report, main, data)
	if !ok {
		return nil, l.report.err()
	}
	c := &Config{Settings: readSettings(root), Pins: map[string][]Pin{}}
	dir := l.dir(main)
	if dataDir != "" {
		c.DataDir = dataDir
	} else if _, embedded := l.source.(builtin); !embedded {
		c.DataDir = l.resolve(dir, c.DataDir)
	}
	entries := l.tools(root, dir, c.ToolFiles)
	l.yaml(root, dir, "/workspaces", c.WorkspacesFile, func(n node, file string) { c.Workspaces = readSpaces(n, l.base(file, c.DataDir)) })
	var limits node
	l.yaml(root, dir, "/limits", c.LimitsFile, func(n node, _ string) { limits, c.Limits = n, readLimits(n) })
	if c.unshared = unshared(limits, c.Limits); c.unshared != nil && c.Redis != nil {
		l.report.add(c.unshared)
	}
	if c.PrincipalsFile != "" {
		l.yaml(root, dir, "/principals", c.PrincipalsFile, func(n node, _ string) { c.Principals = readPrincipals(n) })
	}
	var models []upstream.Definition
	if c.UpstreamsFile != "" {
		l.yaml(root, dir, "/upstreams", c.UpstreamsFile, func(n node, _ string) { models = readUpstreams(n) })
	}
	if c.ServersFile != "" {
		l.yaml(root, dir, "/servers", c.ServersFile, func(n node, _ string) { c.Servers = readServers(n) })
		entries = append(entries, l.servers(c)...)
	}
	c.Agents = agentsOf(c.Workspaces, c.Principals)
	l.auth(root, c)
	l.store(root, c)
	l.callbacks(root, c, entries)
	access, named := l.named(root, dir, "/policy", c.PolicyFile)
	if len(l.report.faults) == 0 && twins(entries) {
		c.Tools = buildRegistry(&l.report, entries)
	}
	if named {
		c.Policy = l.policy(access, c, entries)
	}
	l.unmatched(root, limits, c)
	l.models(root, models, c)
	l.stray(c)
	if err := l.report.err(); err != nil {
		return nil, err
	}
	l.report.warnings.sort()
	c.Digest, c.Files, c.Warnings = l.sum(), l.files, l.report.warnings
	return c, nil
}

// file reads one file; at is where it is named, for the fault.
func (l *loader) file(name string, at *node) ([]byte, bool) {
	data, err := l.read(name)
	if err != nil {
		if at != nil {
			at.fail("%s: %v", name, err)
		} else {
			l.report.add(&Fault{File: name, Message: err.Error()})
		}
		return nil, false
	}
	l.seen(name, l.relative(name), data)
	return data, true
}

// seen notes that a file is part of the configuration, and by which name it enters
// the digest.
func (l *loader) seen(name, relative string, data []byte) {
	l.files = append(l.files, name)
	entry := binary.AppendUvarint(nil, uint64(len(relative)))
	entry = append(entry, relative...)
	entry = binary.AppendUvarint(entry, uint64(len(data)))
	l.digest = append(l.digest, append(entry, data...))
}

func (l *loader) sum() string {
	slices.SortFunc(l.digest, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	h := sha256.New()
	for _, entry := range l.digest {
		h.Write(entry)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// auth holds the rules of who is let in. The keys are made whatever the mode: a
// process goes on with the mode that it was started with.
func (l *loader) auth(root node, c *Config) {
	mode := root.at("/auth/mode")
	_, auth, _ := root.child("auth")
	switch {
	case c.Auth.Mode == AuthNone && !loopback(c.Server.Listen) && !c.Auth.AllowAnyListener:
		root.at("/server/listen").fail("found the address %q beyond loopback, with auth.mode none; expected a loopback address, another auth.mode, or auth.allow_any_listener: true", c.Server.Listen)
	case c.Auth.Mode == AuthKeys && c.PrincipalsFile == "":
		mode.fail("found auth.mode %s without principals; expected the key principals, which names their file", c.Auth.Mode)
	case c.Auth.Mode == AuthJWT && !auth.states("jwt"):
		mode.fail("found auth.mode jwt without auth.jwt; expected at least its issuer and audience")
	}
	if c.Auth.Mode == AuthJWT && c.Server.PublicURL == "" && !loopback(c.Server.Listen) {
		mode.warn("clients of MCP are not told where to get a token, since server.public_url does not say how they see this gateway")
	}
	if u, err := url.Parse(c.Server.PublicURL); err == nil && u.Scheme == "http" && !loopback(net.JoinHostPort(u.Hostname(), "1")) {
		root.at("/server/public_url").warn("clients send their credentials without TLS: whoever can read them can call in their place")
	}
	l.admin(root, c)
	l.certificates(root, "/auth/jwt/ca_file", c.Auth.JWT.CAFile, &c.Auth.JWT.CA)
	l.certificates(root, "/telemetry/traces/ca_file", c.Traces.CAFile, &c.Traces.CA)
	if c.Redis != nil {
		l.certificates(root, "/redis/ca_file", c.Redis.CAFile, &c.Redis.CA)
	}
	if len(l.report.faults) > 0 {
		return
	}
	byHash := map[string]*identity.Principal{}
	for _, p := range c.Principals {
		byHash[p.KeySHA256] = &identity.Principal{Name: p.Name, Agents: p.Agents, Workspace: p.Workspace, Projects: p.Projects, Operator: p.Operator}
	}
	keys, err := identity.NewAPIKeys(byHash)
	if err != nil {
		root.at("/principals").fail("%v", err) // the reader has refused what could be wrong
	}
	c.Keys = keys
}

// admin holds the rules of the admin listener: beyond loopback every request needs the
// credential of an operator. With tokens, the issuer decides which callers are operators.
func (l *loader) admin(root node, c *Config) {
	if !c.Server.AdminBeyondLoopback() {
		return
	}
	at := root.at("/server/admin_listen")
	const found = "found the address %q beyond loopback, "
	switch {
	case c.Auth.Mode == AuthNone:
		at.fail(found+"with auth.mode none; expected a loopback address, or auth.mode keys or jwt, since every request there needs the credential of an operator", c.Server.AdminListen)
	case c.Auth.Mode == AuthKeys && len(l.report.faults) == 0 && !slices.ContainsFunc(c.Principals, func(p Principal) bool { return p.Operator }):
		at.fail(found+"and no operator; expected a loopback address, or a principal with operator: true, since every request there needs the credential of one", c.Server.AdminListen)
	}
}

// certificates reads a file of certificates that a key of the main file names.
func (l *loader) certificates(root node, key, path string, into *string) {
	if path == "" {
		return
	}
	at := root.at(key)
	data, ok := l.file(l.resolve(l.dir(root.file), path), &at)
	if ok && !x509.NewCertPool().AppendCertsFromPEM(data) {
		at.fail("%s: found no certificate; expected some in PEM", path)
	}
	*into = string(data)
}

// base is the folder at which relative roots of a workspaces file start: the
// file's own, or the data folder for the embedded default, which has none.
func (l *loader) base(file, dataDir string) string {
	if _, embedded := l.source.(builtin); embedded {
		file = filepath.Join(dataDir, "workspaces.yaml")
	}
	absolute, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		l.report.addError(file, err)
		return filepath.Dir(file)
	}
	return absolute
}

// named reads the file that a key of the main file names.
func (l *loader) named(root node, dir, key, path string) (policy.Source, bool) {
	name := l.resolve(dir, path)
	var at *node // nil where the file is the default, which no line names
	if _, value, ok := root.child(strings.TrimPrefix(key, "/")); ok {
		at = &value
	}
	data, ok := l.file(name, at)
	return policy.Source{File: name, Data: data}, ok
}

// yaml reads a YAML file that a key of the main file names.
func (l *loader) yaml(root node, dir, key, path string, read func(n node, file string)) {
	file, ok := l.named(root, dir, key, path)
	if !ok {
		return
	}
	if n, ok := readYAML(&l.report, file.File, file.Data); ok {
		read(n, file.File)
	}
}

// policy compiles the policy file against the tools and the workspaces.
func (l *loader) policy(file policy.Source, c *Config, entries []toolEntry) *policy.Policy {
	if f := checkText(file.File, file.Data); f != nil {
		l.report.add(f)
		return nil
	}
	if c.Tools == nil {
		entries = nil // conditions cannot be checked against schemas that are faulty
	}
	tools := make([]condition.Tool, len(entries))
	for i, e := range entries {
		tools[i] = condition.Tool{Name: e.definition.Name, InputSchema: e.definition.InputSchema, Open: e.definition.Open}
	}
	loaded, warnings, err := policy.Load(file, tools, c.Workspaces)
	for _, w := range warnings {
		l.report.warnings = append(l.report.warnings, &Fault{File: w.File, Line: w.Line, Message: w.Message})
	}
	if err != nil {
		l.policyFaults(file.File, err)
	}
	return loaded
}

// policyFaults takes a joined error apart.
func (l *loader) policyFaults(file string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			l.policyFaults(file, e)
		}
		return
	}
	var f *policy.FileError
	if errors.As(err, &f) {
		l.report.add(&Fault{File: f.File, Line: f.Line, Column: f.Column, Message: "found " + f.Found + "; expected " + f.Expected})
		return
	}
	l.report.add(&Fault{File: file, Message: err.Error()})
}

// unmatched warns of names that can match nothing: they are allowed, and surely
// not meant.
func (l *loader) unmatched(root, limits node, c *Config) {
	if len(l.report.faults) > 0 {
		return
	}
	if d := c.Defaults; c.Auth.Mode == "none" && !c.Agents[d.Agent] {
		root.at("/defaults/agent").warn("the default agent %q is named by no project, so requests that name none are refused", d.Agent)
	}
	tools := func(budgets map[string]ratelimit.Budget, path ...string) {
		for _, tool := range slices.Sorted(maps.Keys(budgets)) {
			if _, ok := c.Tools.Lookup(tool); !ok {
				limits.at(pointerOf(append(path, tool))).warn("limits for the tool %q, which is not registered", tool)
			}
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(c.Limits.Agents)) {
		if !c.Agents[agent] {
			limits.at(pointerOf([]string{"agents", agent})).warn("limits for the agent %q, which nothing names", agent)
		}
		tools(c.Limits.Agents[agent].Tools, "agents", agent, "tools")
	}
	tools(c.Limits.Tools, "tools")
	for project := range c.Limits.Projects {
		if _, ok := c.Workspaces[project.Workspace].Projects[project.Name]; !ok {
			limits.at(pointerOf([]string{"projects", project.String()})).warn("limits for the project %q, which no workspace has", project)
		}
	}
}

// models makes what the upstreams file says usable.
func (l *loader) models(root node, definitions []upstream.Definition, c *Config) {
	if c.UpstreamsFile == "" || len(l.report.faults) > 0 {
		return
	}
	models, err := upstream.New(definitions)
	if err != nil {
		root.at("/upstreams").fail("%v", err) // the reader has refused what could be wrong
	}
	c.Upstreams = models
}

// tools reads every file that a pattern matches, once.
func (l *loader) tools(root node, dir string, patterns []string) []toolEntry {
	var entries []toolEntry
	seen := map[string]bool{}
	for i, pattern := range patterns {
		at := root.at("/registry/files/" + strconv.Itoa(i))
		if pattern == "" {
			continue // reported where it was read
		}
		found, err := l.glob(l.resolve(dir, pattern))
		if err != nil {
			at.fail("found the pattern %q, which is malformed; expected a path, or one with * and ?", pattern)
			continue
		}
		if len(found) == 0 {
			at.fail("found no file that matches %q; expected at least one tool file", pattern)
		}
		for _, name := range found {
			if seen[name] {
				continue
			}
			seen[name] = true
			if data, ok := l.file(name, &at); ok {
				entries = append(entries, readTools(&l.report, name, data)...)
			}
		}
	}
	return entries
}

// Embedded tells whether this is the built-in default.
func (c *Config) Embedded() bool { return strings.HasPrefix(c.Files[0], builtinName) }

// String names a configuration for people.
func (c *Config) String() string {
	return fmt.Sprintf("%s (%d tools, digest %.12s)", c.Files[0], len(c.Tools.Entries()), c.Digest)
}
