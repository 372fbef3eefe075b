package configs

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/lab"
)

// testsTimeout bounds how long the tests of a configuration may take while it is loaded. Their
// 10,000 cases take about a tenth of a second; conditions that cost the most they may take longer.
const testsTimeout = 30 * time.Second

// testSuffix ends the names of files of tests beside the policy.
const testSuffix = "_test.yaml"

// LoadUntested is Load, but for the tests that the main file names: they are part of the digest,
// and are neither read nor run. It is for commands that look at a policy, of which its tests may
// not be true; what it returns must not be served.
func LoadUntested(path string) (*Config, error) {
	if path == "" {
		return (&loader{files: builtin{}, untested: true}).load(builtinName+"callgate.yaml", "")
	}
	return (&loader{files: Disk{}, untested: true}).load(path, "")
}

// runTests runs the tests of the configuration. One that fails is a fault.
func (l *loader) runTests(c *Config, files []policy.Source) {
	if l.untested || len(files) == 0 || len(l.report.Faults) > 0 {
		return
	}
	by, err := c.testConfig()
	if err != nil {
		l.report.AddError(files[0].File, err)
		return
	}
	reader := lab.NewTestReader(by, &l.report)
	var tests []lab.Test
	for _, f := range files {
		tests = append(tests, reader.Read(f.File, f.Data)...)
	}
	if len(l.report.Faults) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testsTimeout)
	defer cancel()
	l.addFailures(ctx, by, tests)
}

// addFailures adds a fault for each test that fails.
func (l *loader) addFailures(ctx context.Context, by lab.TestConfig, tests []lab.Test) {
	results, err := lab.RunTests(ctx, by, tests, nil)
	if err != nil {
		l.report.Add(&document.Fault{File: tests[0].File,
			Message: fmt.Sprintf("the tests of the policy did not end (%v); expected that they end within %s", err, duration.Spell(testsTimeout))})
		return
	}
	for _, r := range results {
		if r.Failed == 0 {
			continue
		}
		message := fmt.Sprintf("the test %q fails: %s. %s", r.Test.Name, r.Failures[0], r.Failures[0].Why)
		if r.Failed > 1 {
			message += fmt.Sprintf(" (and %d of its cases more)", r.Failed-1)
		}
		l.report.Add(&document.Fault{File: r.Test.File, Line: r.Test.Line, Message: message})
	}
}

// testConfig is the part of the configuration that tests are read and judged by.
func (c *Config) testConfig() (lab.TestConfig, error) {
	judge, err := c.DryRun()
	if err != nil {
		return lab.TestConfig{}, err
	}
	var tools []string
	for _, e := range c.Tools.Entries() {
		tools = append(tools, e.Name())
	}
	slices.Sort(tools)
	return lab.TestConfig{
		Judge: judge, Policy: c.Policy, Workspaces: c.Workspaces, Agents: slices.Sorted(maps.Keys(c.Agents)),
		Tools: slices.Compact(tools), Rules: slices.Sorted(maps.Keys(c.Approvals.Rules)), Labels: c.Threads.Labels,
	}, nil
}

// FindTests lists the files of tests of the configuration: those beside the policy file whose
// names end in _test.yaml, and those that the main file names. The list may be empty.
func (c *Config) FindTests() ([]string, error) {
	l := &loader{files: Disk{}}
	join, dir := filepath.Join, filepath.Dir
	if c.Embedded() {
		l.files = builtin{}
		join, dir = path.Join, path.Dir
	}
	root := l.folderOf(c.Files[0])
	patterns := []string{join(dir(l.resolve(root, c.PolicyFile)), "*"+testSuffix)}
	for _, p := range c.TestFiles {
		patterns = append(patterns, l.resolve(root, p))
	}
	var found []string
	for _, pattern := range patterns {
		names, err := l.files.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("cannot look for %s: %w", pattern, err)
		}
		found = append(found, names...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// ReadTests reads files of tests for the configuration. Its error is document.Faults, unless the
// configuration is incomplete.
func (c *Config) ReadTests(names []string) (lab.TestConfig, []lab.Test, error) {
	by, err := c.testConfig()
	if err != nil {
		return by, nil, err
	}
	var report document.Report
	reader := lab.NewTestReader(by, &report)
	var tests []lab.Test
	for _, name := range names {
		l := &loader{files: Disk{}}
		if strings.HasPrefix(name, builtinName) {
			l.files = builtin{}
		}
		data, err := l.files.ReadFile(name)
		if err != nil {
			report.Add(&document.Fault{File: name, Message: err.Error()})
			continue
		}
		tests = append(tests, reader.Read(name, data)...)
	}
	return by, tests, report.Err()
}
