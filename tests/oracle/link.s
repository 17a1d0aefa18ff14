// Without a file of assembly Go takes no function without a body: controller.go declares one that is linked to upstream's.
