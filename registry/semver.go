package registry

import (
	"cmp"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// semver is a parsed version of Semantic Versioning 2.0.0. The numbers stay
// digits, so that no version is too long to compare.
type semver struct {
	core [3]string
	pre  []string // empty: a release
	raw  string
}

const maxVersionBytes = 128

func parseVersion(s string) (semver, bool) {
	v := semver{raw: s}
	if len(s) > maxVersionBytes {
		return v, false
	}
	rest, build, hasBuild := strings.Cut(s, "+")
	if hasBuild && !identifiers(build, false) {
		return v, false
	}
	rest, pre, hasPre := strings.Cut(rest, "-")
	if hasPre {
		if !identifiers(pre, true) {
			return v, false
		}
		v.pre = strings.Split(pre, ".")
	}
	core := strings.Split(rest, ".")
	if len(core) != 3 {
		return v, false
	}
	for i, n := range core {
		if !ascii.AllDigits(n) || len(n) > 1 && n[0] == '0' {
			return v, false
		}
		v.core[i] = n
	}
	return v, true
}

func identifiers(s string, numbersStrict bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" {
			return false
		}
		for i := range len(id) {
			if !nameByte(id[i]) || id[i] == '_' {
				return false
			}
		}
		if numbersStrict && ascii.AllDigits(id) && len(id) > 1 && id[0] == '0' {
			return false
		}
	}
	return true
}

// compareVersions orders by precedence; build metadata, which has none, orders
// the rest by its bytes so that the order is total.
func compareVersions(a, b semver) int {
	for i := range a.core {
		if c := compareDigits(a.core[i], b.core[i]); c != 0 {
			return c
		}
	}
	if c := comparePre(a.pre, b.pre); c != 0 {
		return c
	}
	return strings.Compare(a.raw, b.raw)
}

func comparePre(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a))
	}
	for i := range min(len(a), len(b)) {
		na, nb := ascii.AllDigits(a[i]), ascii.AllDigits(b[i])
		var c int
		switch {
		case na && nb:
			c = compareDigits(a[i], b[i])
		case na:
			c = -1
		case nb:
			c = 1
		default:
			c = strings.Compare(a[i], b[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareDigits(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
