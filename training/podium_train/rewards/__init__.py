"""What an answer is worth: graders, the sandbox for model-written code, and the reward."""
