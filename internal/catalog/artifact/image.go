package artifact

import "slices"

// Images adds the container images in an object to a list: of the containers of pods wherever they are, in built-in kinds and in
// custom resources that have pods in them, and of image volumes. Images that are named in other ways are not found.
func Images(v any, list []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"containers", "initContainers", "ephemeralContainers"} {
			containers, _ := v[key].([]any)
			for _, c := range containers {
				list = addImage(c, "image", list)
			}
		}
		volumes, _ := v["volumes"].([]any)
		for _, volume := range volumes {
			if m, ok := volume.(map[string]any); ok {
				list = addImage(m["image"], "reference", list)
			}
		}
		for _, inner := range v {
			list = Images(inner, list)
		}
	case []any:
		for _, inner := range v {
			list = Images(inner, list)
		}
	}
	return list
}

func addImage(v any, key string, list []string) []string {
	m, _ := v.(map[string]any)
	if image, ok := m[key].(string); ok && image != "" && !slices.Contains(list, image) {
		return append(list, image)
	}
	return list
}
