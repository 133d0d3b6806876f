"""What the controller decides: who leads, who may, where replicas go."""
