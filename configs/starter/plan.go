package starter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
	"github.com/callgate/callgate/registry"
)

// Plan is a configuration that is not written yet.
type Plan struct {
	files  []file
	folder string
}

type file struct {
	name string // relative, with slashes
	data []byte
}

// secretsFolder is where values of a client's file are written, each to a file that only its owner
// may read. servers.yaml names the files: it can be shown and kept with other sources, and it can be
// edited while a secret changes. The values cannot become env:NAME, since nobody would set the variables where
// a client starts Callgate.
const secretsFolder = "secrets/"

// New plans the files of a configuration in a folder. The planned configuration loads.
func New(folder string, o Options) (*Plan, error) {
	if !registry.ValidName(o.Agent) {
		return nil, fmt.Errorf("--agent is %q; expected letters, digits, dots, _ and -", o.Agent)
	}
	if len(o.Allow) == 0 {
		o.Allow = o.Tools.allow
	}
	for _, pattern := range o.Allow {
		if pattern != "*" && !registry.ValidName(strings.TrimSuffix(pattern, ".*")) {
			return nil, fmt.Errorf("--allow is %q; expected the name of a tool, a beginning such as files.*, or *", pattern)
		}
	}
	p := &Plan{folder: folder}
	p.add(MainFile, mainFile(o))
	p.add("workspaces.yaml", workspaces(o.Agent))
	p.add("policy.csv", access(o))
	p.add("limits.yaml", limits)
	if o.Upstream != "" {
		text, err := upstreams(o)
		if err != nil {
			return nil, err
		}
		p.add("upstreams.yaml", text)
	}
	if o.Tools.File != nil {
		p.add("tools.yaml", string(o.Tools.File))
	}
	if len(o.Tools.Servers) > 0 {
		p.addServers(o.Tools.Servers)
	}
	p.format()
	_, err := configs.LoadFrom(planned{p}, p.path(MainFile), "")
	return p, err
}

// format lays the files out as "callgate config fmt" would, so that it finds nothing to do.
func (p *Plan) format() {
	for i, f := range p.files {
		if strings.HasPrefix(f.name, secretsFolder) {
			continue
		}
		if out, err := configs.Format(f.name, f.data); err == nil { // else fmt leaves it as it is, too
			p.files[i].data = out
		}
	}
}

func (p *Plan) add(name, text string) { p.files = append(p.files, file{name, []byte(text)}) }

func (p *Plan) path(name string) string { return filepath.Join(p.folder, filepath.FromSlash(name)) }

// Paths are the paths of the files, the main file first.
func (p *Plan) Paths() []string {
	var all []string
	for _, f := range p.files {
		all = append(all, p.path(f.name))
	}
	return all
}

// Write writes the files, each whole, readable for their owner alone. Where one is there already,
// nothing is written, unless force is set.
func (p *Plan) Write(force bool) error {
	var there []string
	for _, name := range p.Paths() {
		switch _, err := os.Lstat(name); {
		case err == nil:
			there = append(there, name)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("cannot write %s: %w", name, oserr.Reason(err))
		}
	}
	if len(there) > 0 && !force {
		return fmt.Errorf("found %s; nothing was written: --force overwrites them", strings.Join(there, ", "))
	}
	// The main file is the last: without it there is no configuration.
	for _, f := range slices.Backward(p.files) {
		name := p.path(f.name)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err == nil {
			err = wholefile.Replace(name, f.data)
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", name, oserr.Reason(err))
		}
	}
	return nil
}

// planned reads the files of a plan as if they were written.
type planned struct{ *Plan }

func (p planned) ReadFile(name string) ([]byte, error) {
	for _, f := range p.files {
		if p.path(f.name) == name {
			return f.data, nil
		}
	}
	return configs.Disk{}.ReadFile(name)
}

// Glob finds the planned files alone: tools.yaml is named, and nothing else matches.
func (p planned) Glob(pattern string) ([]string, error) {
	var found []string
	for _, name := range p.Paths() {
		if ok, err := filepath.Match(pattern, name); err != nil {
			return nil, err
		} else if ok {
			found = append(found, name)
		}
	}
	return found, nil
}
