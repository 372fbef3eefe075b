package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/configs/document"

	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
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
	Budgets    *budget.Set // of tokens and money; nil where there are none
	Approvals  Approvals
	Hooks      *hook.Set // nil where there are none
	Principals []Principal
	Keys       *identity.APIKeys // of the principals
	Upstreams  *upstream.Set     // nil where there are no upstreams
	Servers    []lockfile.Server
	Pins       map[string][]lockfile.Pin // what was accepted of each server that has a file of them
	Agents     map[string]bool           // that a project or a principal names
	// BringsTools says that requests to some model may bring tools (tools: request).
	BringsTools bool
	// Digest is SHA-256, in hex, over the names and bytes of all files, relative
	// to the main one: replicas with equal files have equal digests.
	Digest string
	// Files are the files that it was read from, the main one first.
	Files    []string
	Warnings []*document.Fault
	// PolicyWarnings are those of Warnings that are of the policy file.
	PolicyWarnings []policy.Warning
	// Candidate is the configuration whose judgement is compared with this one's; nil where there
	// is none, or where it does not load, for CandidateFault.
	Candidate      *Config
	CandidateFault error

	contents []content // of Files
	source   Files

	missingReplicas *document.Fault // why the limits cannot be counted in Redis; nil where they can
	asks            map[Part]document.Faults
}

// Load reads the configuration whose main file is path; empty means the
// embedded default. Its error is Faults, which name every file and line.
func Load(path string) (*Config, error) { return LoadFrom(Disk{}, path, "") }

// LoadFrom is Load with files in place of the disk. The lockfiles of tool servers are read
// below lockfileDir; empty is the configuration's own data folder.
func LoadFrom(files Files, path, lockfileDir string) (*Config, error) {
	if path == "" {
		return Default("")
	}
	return (&loader{files: files, lockfileDir: lockfileDir}).load(path, "")
}

// Reload is LoadFrom after another configuration, whose schemas of tools it takes over where they have
// not changed.
func Reload(files Files, path, lockfileDir string, before *Config) (*Config, error) {
	return (&loader{files: files, lockfileDir: lockfileDir, before: before.Tools}).load(path, "")
}

// Default is the embedded default with its data in another folder; empty is its own.
func Default(dataDir string) (*Config, error) {
	return (&loader{files: builtin{}}).load(BuiltIn, dataDir)
}

// LoadWithPolicy is Load with another policy in place of the one that the main file names.
// Everything that depends on the policy is checked against it, but its tests are not run: see
// LoadUntested. The digest is over it.
func LoadWithPolicy(path string, access policy.Source) (*Config, error) {
	return loadWithPolicy(&loader{files: Disk{}, policy: &access, untested: true}, path)
}

// LoadTestedWithPolicy is LoadWithPolicy that also runs the tests.
func LoadTestedWithPolicy(path string, access policy.Source) (*Config, error) {
	return loadWithPolicy(&loader{files: Disk{}, policy: &access}, path)
}

func loadWithPolicy(l *loader, path string) (*Config, error) {
	if path == "" {
		l.files, path = builtin{}, BuiltIn
	}
	return l.load(path, "")
}

// loader gathers what one load reads.
type loader struct {
	files       Files
	root        string         // the folder of the main file
	lockfileDir string         // see LoadFrom
	policy      *policy.Source // see LoadWithPolicy
	report      document.Report
	contents    []content          // of the files that were read
	untested    bool               // see LoadUntested
	before      *registry.Registry // whose schemas are taken over; nil: none are
	candidate   *CandidateFiles    // whose files stand in the place of those that are served
	// toolsOfRequests says that the policy and the limits may name tools that only requests bring.
	toolsOfRequests bool
}

func (l *loader) load(main, dataDir string) (*Config, error) {
	l.root = l.folderOf(main)
	data, ok := l.file(main, nil)
	if !ok {
		return nil, l.report.Err()
	}
	root, ok := document.ReadYAML(&l.report, main, data)
	if !ok {
		return nil, l.report.Err()
	}
	c := &Config{source: l.files, Settings: readSettings(root), Pins: map[string][]lockfile.Pin{}}
	if c.Redis != nil {
		c.asksFor(RedisLimiter, root.At("/redis"), "redis")
	}
	if l.candidate != nil {
		l.candidate.replace(&c.Settings)
	}
	dir := l.root
	if dataDir != "" {
		c.DataDir = dataDir
	} else if !l.embedded() {
		c.DataDir = l.resolve(dir, c.DataDir)
	}
	entries := l.tools(root, dir, c.ToolFiles)
	var workspaces, limits document.Node
	spending := &budget.Set{BytesPerToken: 1}
	l.readNamedYAML(root, dir, "/workspaces", c.WorkspacesFile, func(n document.Node, file string) {
		workspaces, c.Workspaces = n, readWorkspaces(n, l.rootsDir(file, c.DataDir))
	})
	l.readNamedYAML(root, dir, "/limits", c.LimitsFile, func(n document.Node, _ string) { limits, c.Limits = n, readLimits(n, spending) })
	if c.missingReplicas = missingReplicas(limits, c.Limits); c.missingReplicas != nil && c.Redis != nil {
		l.report.Add(c.missingReplicas)
	}
	var people, rules, hooks document.Node
	if c.PrincipalsFile != "" {
		l.readNamedYAML(root, dir, "/principals", c.PrincipalsFile,
			func(n document.Node, _ string) { people, c.Principals = n, readPrincipals(n) })
	}
	if c.ApprovalsFile != "" {
		l.readNamedYAML(root, dir, "/approvals", c.ApprovalsFile,
			func(n document.Node, _ string) { rules, c.Approvals = n, readApprovals(n) })
	}
	if c.HooksFile != "" {
		l.readNamedYAML(root, dir, "/hooks", c.HooksFile,
			func(n document.Node, _ string) { hooks, c.Hooks = n, readHooks(n, c.Threads.Labels) })
	}
	var models []upstream.Definition
	if c.UpstreamsFile != "" {
		l.readNamedYAML(root, dir, "/upstreams", c.UpstreamsFile, func(n document.Node, _ string) {
			models = readUpstreams(n)
			c.asksForWires(n, models)
		})
	}
	if c.PricesFile != "" {
		l.readNamedYAML(root, dir, "/prices", c.PricesFile, func(n document.Node, _ string) { readPrices(n, spending) })
	}
	l.toolsOfRequests = slices.ContainsFunc(models, bringsTools)
	c.BringsTools = l.toolsOfRequests
	var servers document.Node
	if c.ServersFile != "" {
		l.readNamedYAML(root, dir, "/servers", c.ServersFile, func(n document.Node, _ string) { servers, c.Servers = n, readServers(n) })
		entries = append(entries, l.readLockfiles(c, servers)...)
		l.warnUnusedBoundaries(c, servers)
	}
	l.checkLabels(c, servers, entries)
	c.Agents = knownAgents(c.Workspaces, c.Principals)
	c.chooseDefaults(root)
	l.checkAuth(root, c)
	l.checkStore(root, c)
	l.checkCallbacks(root, c, entries)
	checkExchanges(root, c, entries)
	access, named := l.readPolicy(root, dir, c.PolicyFile)
	if len(l.report.Faults) == 0 && toolfile.CheckDuplicates(&l.report, entries) {
		c.Tools = toolfile.BuildRegistry(&l.report, entries, l.before)
	}
	if named {
		c.Policy = l.compilePolicy(access, c, entries)
	}
	l.checkCountedAlone(limits, c)
	l.checkApprovals(rules, people, c)
	l.warnUnmatched(root, limits, workspaces, people, spending.Budgets, models, c)
	l.warnUnmatchedHooks(hooks, c)
	l.buildUpstreams(root, models, c)
	l.checkBudgets(limits, spending, models, c)
	l.warnUnusedEffects(c)
	l.runTests(c, l.matchingFiles(root, dir, "/tests", c.TestFiles, "file of tests"))
	l.loadCandidate(main, c)
	if err := l.report.Err(); err != nil {
		return nil, err
	}
	l.report.Warnings.Locate()
	l.report.Warnings.Sort()
	for _, asked := range c.asks {
		asked.Locate()
	}
	c.Digest, c.Warnings, c.contents = digestOf(l.contents), l.report.Warnings, l.contents
	for _, file := range l.contents {
		c.Files = append(c.Files, file.name)
	}
	return c, nil
}

// file reads one file; at is where it is named, for the fault.
func (l *loader) file(name string, at *document.Node) ([]byte, bool) {
	data, err := l.files.ReadFile(name)
	if err != nil {
		if at != nil {
			at.Fail("%s: %v", name, err)
		} else {
			l.report.Add(&document.Fault{File: name, Message: err.Error()})
		}
		return nil, false
	}
	l.addFile(name, l.digestName(name), data)
	return data, true
}

// rootsDir is the folder at which relative roots of a workspaces file start: the
// file's own, or the data folder for the embedded default, which has none.
func (l *loader) rootsDir(file, dataDir string) string {
	if l.embedded() {
		file = filepath.Join(dataDir, "workspaces.yaml")
	}
	absolute, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		l.report.AddError(file, err)
		return filepath.Dir(file)
	}
	return absolute
}

// readNamed reads the file that a key of the main file names.
func (l *loader) readNamed(root document.Node, dir, key, path string) (policy.Source, bool) {
	name := l.resolve(dir, path)
	var at *document.Node // nil where the file is the default, which no line names
	if _, value, ok := root.Child(strings.TrimPrefix(key, "/")); ok {
		at = &value
	}
	data, ok := l.file(name, at)
	return policy.Source{File: name, Data: data}, ok
}

// readPolicy reads the policy file, unless LoadWithPolicy gave another.
func (l *loader) readPolicy(root document.Node, dir, path string) (policy.Source, bool) {
	if l.policy == nil {
		return l.readNamed(root, dir, "/policy", path)
	}
	l.addFile(l.policy.File, l.digestName(l.resolve(dir, path)), l.policy.Data)
	return *l.policy, true
}

// readNamedYAML reads a YAML file that a key of the main file names.
func (l *loader) readNamedYAML(root document.Node, dir, key, path string, read func(n document.Node, file string)) {
	file, ok := l.readNamed(root, dir, key, path)
	if !ok {
		return
	}
	if n, ok := document.ReadYAML(&l.report, file.File, file.Data); ok {
		read(n, file.File)
	}
}

// compilePolicy compiles the policy file against the tools and the workspaces.
func (l *loader) compilePolicy(file policy.Source, c *Config, entries []toolfile.Tool) *policy.Policy {
	if f := document.CheckText(file.File, file.Data); f != nil {
		l.report.Add(f)
		return nil
	}
	var tools []condition.Tool
	if c.Tools != nil { // else conditions cannot be checked against schemas that are faulty
		tools = conditionTools(entries, c.Tools)
	}
	loaded, warnings, err := policy.Load(file, tools, c.Workspaces, c.Threads.Labels...)
	for _, w := range warnings {
		if w.UnknownTool && l.toolsOfRequests {
			continue
		}
		c.PolicyWarnings = append(c.PolicyWarnings, w)
		l.report.Warnings = append(l.report.Warnings, &document.Fault{File: w.File, Line: w.Line, Message: w.Message})
	}
	if err != nil {
		l.addPolicyErrors(file.File, err)
	}
	return loaded
}

// conditionTools are tools as conditions see them.
func conditionTools(entries []toolfile.Tool, registered *registry.Registry) []condition.Tool {
	secret := map[string][]*registry.Entry{}
	if registered.HasSecrets() {
		for _, e := range registered.Entries() {
			secret[e.Name()] = append(secret[e.Name()], e)
		}
	}
	tools := make([]condition.Tool, len(entries))
	for i, e := range entries {
		versions := secret[e.Definition.Name]
		tools[i] = condition.Tool{
			Name: e.Definition.Name, InputSchema: e.Definition.InputSchema, Open: e.Definition.Open,
			Secret: func(name string) bool {
				return slices.ContainsFunc(versions, func(e *registry.Entry) bool { return e.Secret([]string{name}) })
			},
		}
	}
	return tools
}

// addPolicyErrors adds each error that err joins.
func (l *loader) addPolicyErrors(file string, err error) {
	for err := range document.Each(err) {
		fault := &document.Fault{File: file, Message: err.Error()}
		var f *policy.FileError
		if errors.As(err, &f) {
			fault = &document.Fault{File: f.File, Line: f.Line, Column: f.Column, Message: "found " + f.Found + "; expected " + f.Expected}
		}
		l.report.Add(fault)
	}
}

// tools reads every file that a pattern matches, once.
func (l *loader) tools(root document.Node, dir string, patterns []string) []toolfile.Tool {
	files := l.matchingFiles(root, dir, "/registry/files", patterns, "tool file")
	tools := make([][]toolfile.Tool, len(files))
	l.report.Spread(len(files), func(i int, r *document.Report) {
		tools[i] = toolfile.Read(r, files[i].File, files[i].Data)
	})
	return slices.Concat(tools...)
}

// literalPattern makes the name of a folder a pattern that matches it alone.
var literalPattern = strings.NewReplacer(`\`, `\\`, "[", `\[`, "*", `\*`, "?", `\?`)

// matchingFiles reads every file that one of the patterns at a key matches, once.
func (l *loader) matchingFiles(root document.Node, dir, key string, patterns []string, of string) []policy.Source {
	var files []policy.Source
	seen := map[string]bool{}
	for i, pattern := range patterns {
		at := root.At(key + "/" + strconv.Itoa(i))
		if pattern == "" {
			continue // reported where it was read
		}
		found, err := l.files.Glob(l.resolve(literalPattern.Replace(dir), pattern))
		if err != nil {
			at.Fail("found the pattern %q, which is malformed; expected a path, or one with * and ?", pattern)
			continue
		}
		if len(found) == 0 {
			at.Fail("found no file that matches %q; expected at least one %s", pattern, of)
		}
		for _, name := range found {
			if seen[name] {
				continue
			}
			seen[name] = true
			if data, ok := l.file(name, &at); ok {
				files = append(files, policy.Source{File: name, Data: data})
			}
		}
	}
	return files
}

// CheckLockfile says why the configuration would be refused if these were the accepted
// tools of a server.
func (c *Config) CheckLockfile(server string, pins []lockfile.Pin) error {
	data, err := lockfile.Encode(server, pins)
	if err != nil {
		return err
	}
	_, err = LoadFrom(overlay{Disk{}, lockfile.Path(c.DataDir, server), data}, c.Files[0], "")
	return err
}

// MissingReplicas says why the limits cannot be counted in Redis; nil where they can.
func (c *Config) MissingReplicas() *document.Fault { return c.missingReplicas }

// Source returns what the files were read from.
func (c *Config) Source() Files { return c.source }

// Embedded reports whether this is the built-in default.
func (c *Config) Embedded() bool { return strings.HasPrefix(c.Files[0], builtinName) }

// String names a configuration for people.
func (c *Config) String() string {
	return fmt.Sprintf("%s (%s, digest %.12s)", c.Files[0], text.Count(len(c.Tools.Entries()), "tool"), c.Digest)
}

// ReadPolicy reads the policy file of a configuration again, as it is now.
func (c *Config) ReadPolicy() (policy.Source, error) {
	l := &loader{files: Disk{}}
	if c.Embedded() {
		l.files = builtin{}
	}
	name := l.resolve(l.folderOf(c.Files[0]), c.PolicyFile)
	data, err := l.files.ReadFile(name)
	if err != nil {
		return policy.Source{}, fmt.Errorf("%s: %w", name, err)
	}
	return policy.Source{File: name, Data: data}, nil
}
