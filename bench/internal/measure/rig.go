package measure

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Rig is what figures were measured on. What cannot be found out is empty.
type Rig struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	MemoryMiB int64   `json:"memoryMiB"`
	OS        string  `json:"os"`
	Kernel    string  `json:"kernel"`
	Go        string  `json:"go"`
	Date      string  `json:"date"`
	Load      float64 `json:"loadAtStart"`
	// Versions of what is compared, and of Kubernetes.
	Versions map[string]string `json:"versions"`
}

// ThisRig is the machine that this process runs on, with the versions of modules that it was built with.
func ThisRig(modules map[string]string) Rig {
	r := Rig{
		CPU: valueOf("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(),
		OS:     strings.Trim(valueOf("/etc/os-release", "PRETTY_NAME", "="), `"`),
		Kernel: kernel(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.RFC3339), Versions: map[string]string{},
	}
	kib, _ := strconv.ParseInt(strings.TrimSuffix(valueOf("/proc/meminfo", "MemTotal", ":"), " kB"), 10, 64)
	r.MemoryMiB = kib >> 10
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(data), " ")
		r.Load, _ = strconv.ParseFloat(first, 64)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	for _, dep := range info.Deps {
		if name := modules[dep.Path]; name != "" {
			r.Versions[name] = dep.Version
		}
	}
	return r
}

// valueOf is the value of the first line of a file that begins with the key.
func valueOf(file, key, separator string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(line, separator); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func kernel() string {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return ""
	}
	var b bytes.Buffer
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
