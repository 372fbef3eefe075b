package boundary

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/internal/lexical"
)

const (
	// maxPath and maxName are what Linux opens at most, in bytes.
	maxPath = 4096
	maxName = 255
	// maxLinks is how many symbolic links one path may pass.
	maxLinks = 40
)

const (
	reasonOutside = "The path must stay within the project's directories. A relative path starts at the first of them."
	reasonNoRoots = "This project allows no paths."
	reasonForm    = "The path must be plain: not empty, not too long, not a URL, without NUL, backslashes, percent-encoded dots, slashes or percent signs, or characters that some programs read as a dot or a slash."
	reasonUnknown = "The path cannot be followed to its end, so it is refused."
)

// errPath is a path that cannot be followed.
var errPath = errors.New("policy: the path cannot be followed")

// Place is a file or directory within a project, as it was found.
//
// It describes the file system at the time of the check. A tool that opens the path
// later may meet another: a link put there in between leads where it will. A
// tool on the same file system closes that gap by opening Name below Root with
// os.Root (or openat2 and RESOLVE_BENEATH), which refuses links that lead out;
// a tool elsewhere must have boundaries of its own.
type Place struct {
	Root string // absolute; the project's root, its links resolved
	Name string // relative to Root, its links resolved; "." is Root itself
}

// Path is the whole path.
func (p Place) Path() string { return filepath.Join(p.Root, p.Name) }

// StartsAt reports whether relative paths start in a folder: it is the first root, links followed.
func (p Lists) StartsAt(folder string) bool {
	if len(p.Roots) == 0 {
		return false
	}
	root, err := resolveLinks(p.Roots[0])
	if err != nil {
		return false
	}
	actual, err := resolveLinks(filepath.Clean(folder))
	return err == nil && actual == root
}

// Resolve checks a path against the project's roots and says which file it
// means. A relative path starts at Start; "~" is a name like any
// other. The path must be within a root as it is written, with . and ..
// removed, and also where the file system leads it, one link and one .. after
// the other; what does not exist has no links. The roots' own links are
// followed. A part that cannot be read is refused. The error is an
// *OutsideError.
func (p Lists) Resolve(value string) (Place, error) {
	if len(p.Roots) == 0 {
		return Place{}, outside(KindPath, reasonNoRoots)
	}
	if !plainPath(value) {
		return Place{}, outside(KindPath, reasonForm)
	}
	absolute := value
	if !filepath.IsAbs(absolute) {
		// Not filepath.Join, which would remove .. before links are looked at.
		absolute = cmp.Or(p.Start, p.Roots[0]) + string(filepath.Separator) + absolute
	}
	if len(absolute) > maxPath {
		return Place{}, outside(KindPath, reasonForm)
	}
	clean := filepath.Clean(absolute)
	inside := false
	for _, root := range p.Roots {
		if _, ok := relativeTo(root, clean); ok {
			inside = true
		}
	}
	if !inside {
		return Place{}, outside(KindPath, reasonOutside)
	}
	// Both readings must be inside: that of the kernel, which follows a link
	// before the .. after it, and that of programs which clean paths first.
	actual, err := resolveLinks(absolute)
	if err != nil {
		return Place{}, outside(KindPath, reasonUnknown)
	}
	cleanActual := actual
	if clean != absolute {
		if cleanActual, err = resolveLinks(clean); err != nil {
			return Place{}, outside(KindPath, reasonUnknown)
		}
	}
	var place Place
	found, cleanFound := false, false
	for _, root := range p.Roots {
		realRoot, err := resolveLinks(root)
		if err != nil {
			continue
		}
		if name, ok := relativeTo(realRoot, actual); ok && !found {
			place, found = Place{Root: realRoot, Name: name}, true
		}
		if _, ok := relativeTo(realRoot, cleanActual); ok {
			cleanFound = true
		}
	}
	if !found || !cleanFound {
		return Place{}, outside(KindPath, reasonOutside)
	}
	return place, nil
}

// relativeTo returns path relative to root, both clean and absolute, where it is
// root or below it.
func relativeTo(root, path string) (name string, ok bool) {
	if !filepath.IsAbs(root) {
		return "", false
	}
	if path == root {
		return ".", true
	}
	prefix := strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator)
	if !strings.HasPrefix(path, prefix) {
		return "", false
	}
	return path[len(prefix):], true
}

// resolveLinks walks an absolute path as the kernel does, but for names that do not
// exist, which it takes for directories.
func resolveLinks(path string) (string, error) {
	separator := string(filepath.Separator)
	at := separator
	rest := strings.Split(path, separator)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at = next
			continue
		case err != nil:
			return "", errPath
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", errPath
		}
		target, err := os.Readlink(next)
		if err != nil || target == "" {
			return "", errPath
		}
		if filepath.IsAbs(target) {
			at = separator
		}
		rest = append(strings.Split(target, separator), rest...)
		if len(rest) > maxPath {
			return "", errPath
		}
	}
	return at, nil
}

// RootProblem returns the fault of an entry of Roots; "" for none.
func RootProblem(root string) string {
	if bad := lexical.NameProblem(root); bad != "" {
		return bad
	}
	if !filepath.IsAbs(root) || filepath.Clean(root) != root {
		return fmt.Sprintf("found the root %s, expected an absolute path without ., .., // or a slash at its end", parser.Quote(root))
	}
	return ""
}
